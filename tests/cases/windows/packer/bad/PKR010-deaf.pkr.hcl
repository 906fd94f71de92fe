source "qemu" "x" { # refuse: PKR010
  headless = true
  qemuargs = [["-serial", "none"]]
}

source "qemu" "y" { # refuse: PKR010
}

source "hyperv-iso" "z" {
}

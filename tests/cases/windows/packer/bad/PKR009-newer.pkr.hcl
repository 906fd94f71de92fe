packer {
  required_plugins { # refuse: PKR009
  }
}

source "qemu" "x" {
  efi_boot   = true # refuse: PKR009
  vtpm       = true # refuse: PKR009
  cd_content = {}   # refuse: PKR009
  efi_config {      # refuse: PKR009
  }
  qemuargs = [["-serial", "file:${var.serial_log}"]]
}

build {
  provisioner "windows-update" { # refuse: PKR009
  }
}

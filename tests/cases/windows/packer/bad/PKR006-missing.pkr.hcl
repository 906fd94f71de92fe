source "qemu" "x" {
  iso_url = var.iso_path # refuse: PKR006
  qemuargs = [["-serial", "file:${var.serial_log}"]]
}

source "qemu" "x" {
  iso_url      = var.iso_path
  iso_checksum = "md5:d41d8cd98f00b204e9800998ecf8427e" # refuse: PKR006
  qemuargs = [["-serial", "file:${var.serial_log}"]]
}

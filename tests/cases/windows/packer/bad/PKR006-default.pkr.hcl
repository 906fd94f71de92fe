variable "digest" {
  type    = string
  default = "none"
}

source "qemu" "x" {
  iso_url      = var.iso_path
  iso_checksum = var.digest # refuse: PKR006
  qemuargs = [["-serial", "file:${var.serial_log}"]]
}

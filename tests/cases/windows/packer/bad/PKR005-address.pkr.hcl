source "qemu" "x" {
  iso_checksum = var.iso_checksum
  iso_url      = "https://example.invalid/windows.iso" # refuse: PKR005
  # http://example.invalid in a comment is only a word
  qemuargs = [["-serial", "file:${var.serial_log}"]]
}

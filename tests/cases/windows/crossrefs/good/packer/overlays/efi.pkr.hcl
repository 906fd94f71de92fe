source "qemu" "windows-efi" {
  iso_url      = var.iso_path
  iso_checksum = var.iso_checksum
  efi_boot     = true
  vtpm         = true
  qemuargs = [
    ["-serial", "file:${var.serial_log}"],
  ]
}

build {
  sources = ["source.qemu.windows-efi"]

  provisioner "windows-update" {
    search_criteria = "IsInstalled=0"
  }
}

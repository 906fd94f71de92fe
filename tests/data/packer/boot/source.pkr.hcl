source "qemu" "tiny" {
  iso_url          = var.iso_path
  iso_checksum     = var.iso_checksum
  accelerator      = "none"
  headless         = true
  communicator     = var.communicator
  ssh_username     = "nobody"
  ssh_password     = var.ssh_password
  ssh_timeout      = "3s"
  disable_vnc      = true
  boot_wait        = "0s"
  output_directory = var.output_directory
  vm_name          = "tiny.qcow2"
  disk_size        = "8M"
  format           = "qcow2"
  memory           = 64
  qemuargs = [
    ["-serial", "file:${var.serial_log}"],
    ["-boot", "d"],
  ]
}

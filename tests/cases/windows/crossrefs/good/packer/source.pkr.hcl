# A Windows guest, as far as packer 1.6.6 knows one: see https://example.invalid/why.
source "qemu" "windows" {
  iso_url          = var.iso_path
  iso_checksum     = var.iso_checksum
  output_directory = var.output_directory
  headless         = var.headless
  accelerator      = "kvm"
  machine_type     = "q35"
  cpus             = 4
  memory           = 8192
  disk_size        = "${var.disk_gib}G"
  disk_interface   = "virtio-scsi"
  disk_discard     = "unmap"
  net_device       = "virtio-net"
  format           = "qcow2"
  vm_name          = "windows.qcow2"
  boot_wait        = "1s"
  boot_command     = ["<up><wait><up><wait><up>"]
  cd_files         = ["./media/autounattend.xml", "./media/vega"]
  cd_label         = "VEGA"
  communicator     = "ssh"
  ssh_username     = "vega"
  ssh_password     = var.admin_password
  ssh_timeout      = "4h"
  shutdown_command = "shutdown /s /t 0 /f /d p:4:1 /c \"Packer Shutdown\""
  shutdown_timeout = "30m"
  qemuargs = [
    ["-serial", "file:${var.serial_log}"],
    ["-cpu", "qemu64,hv-relaxed"],
  ]
}

# As far as packer 1.6.6 goes, which distributions have.
source "qemu" "windows" {
  iso_url          = var.iso_path
  iso_checksum     = var.iso_checksum
  output_directory = var.output_directory
  vm_name          = "tiny-windows.qcow2"
  format           = "qcow2"

  accelerator    = var.accelerator
  machine_type   = "q35"
  cpus           = 4
  memory         = 8192
  disk_size      = "128G"
  disk_interface = "virtio-scsi"
  disk_discard   = "unmap"
  disk_cache     = "unsafe"
  net_device     = "virtio-net"
  headless       = var.headless

  # Autounattend.xml at the root of any medium is found by Windows Setup; the scripts find the
  # medium by its label.
  cd_files = ["media/autounattend.xml", "media/vega", "answer"]
  cd_label = "VEGA"

  # "Press any key to boot from CD": the arrow does nothing where nobody asks.
  boot_wait    = "1s"
  boot_command = ["<up><wait><up><wait><up><wait><up><wait><up><wait><up><wait><up><wait><up>"]

  communicator             = "ssh"
  ssh_username             = "provision"
  ssh_private_key_file     = var.ssh_private_key_file
  ssh_timeout              = "4h"
  ssh_file_transfer_method = "sftp"

  shutdown_command = "powershell.exe -NoProfile -NonInteractive -ExecutionPolicy Bypass -File \"C:\\Program Files\\VegaImage\\scripts\\generalize.ps1\""
  shutdown_timeout = "1h"

  qemuargs = [
    ["-bios", "${var.firmware}"],
    ["-cpu", "${var.cpu}"],
    ["-smp", "cpus=4,sockets=1,cores=4"],
    ["-serial", "file:${var.serial_log}"],
  ]
}

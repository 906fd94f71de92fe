# As far as packer 1.6.6 goes, which distributions have.
source "hyperv-iso" "windows" {
  iso_url          = var.iso_path
  iso_checksum     = var.iso_checksum
  output_directory = var.output_directory
  vm_name          = "tiny-windows"

  generation           = 2
  cpus                 = 4
  memory               = 8192
  disk_size            = 131072
  switch_name          = var.switch_name
  guest_additions_mode = "none"
  first_boot_device    = "DVD"
  headless             = var.headless

  enable_secure_boot = false

  # Autounattend.xml at the root of any medium is found by Windows Setup; the scripts find the
  # medium by its label.
  cd_files = ["media/autounattend.xml", "media/vega", "answer"]
  cd_label = "VEGA"

  # "Press any key to boot from CD": the arrow does nothing where nobody asks.
  boot_wait    = "1s"
  boot_command = ["<up><wait><up><wait><up><wait><up><wait><up><wait><up><wait><up><wait><up>"]

  communicator             = "ssh"
  ssh_username             = "vega"
  ssh_private_key_file     = var.ssh_private_key_file
  ssh_timeout              = "4h"
  ssh_file_transfer_method = "sftp"

  shutdown_command = "powershell.exe -NoProfile -NonInteractive -ExecutionPolicy Bypass -File \"C:\\Program Files\\VegaImage\\scripts\\generalize.ps1\""
  shutdown_timeout = "1h"
}

# For packer 1.7 and newer: takes the place of source.pkr.hcl (README.md).
source "proxmox-iso" "windows" {
  proxmox_url          = var.proxmox_url
  node                 = var.proxmox_node
  username             = var.proxmox_username
  template_name        = "tiny-windows"
  template_description = "tiny windows 1.0.0"

  os              = "win11"
  cpu_type        = "host"
  cores           = 4
  memory          = 8192
  scsi_controller = "virtio-scsi-single"

  token = var.proxmox_token

  machine = "q35"
  bios    = "ovmf"
  serials = ["socket"]

  network_adapters {
    model  = "virtio"
    bridge = var.proxmox_bridge
  }

  disks {
    type         = "scsi"
    disk_size    = "128G"
    storage_pool = var.proxmox_disk_pool
    format       = "raw"
    io_thread    = true
    discard      = true
  }

  efi_config {
    efi_storage_pool  = var.proxmox_disk_pool
    pre_enrolled_keys = false
  }

  boot_iso {
    type             = "ide"
    iso_url          = var.iso_path
    iso_checksum     = var.iso_checksum
    iso_storage_pool = var.proxmox_iso_pool
    unmount          = true
  }

  additional_iso_files {
    type             = "ide"
    cd_files         = ["media/autounattend.xml", "media/vega", "answer"]
    cd_label         = "VEGA"
    iso_storage_pool = var.proxmox_iso_pool
    unmount          = true
  }

  # "Press any key to boot from CD": the arrow does nothing where nobody asks.
  boot_wait    = "1s"
  boot_command = ["<up><wait><up><wait><up><wait><up><wait><up><wait><up><wait><up><wait><up>"]

  communicator         = "ssh"
  ssh_username         = "vega"
  ssh_private_key_file = var.ssh_private_key_file
  ssh_timeout          = "4h"
}

variable "proxmox_token" {
  description = "the secret of an API token"
  type        = string
  sensitive   = true
}

# As far as packer 1.6.6 goes, which distributions have. It can give a
# machine neither UEFI nor a second CD: this can be checked, but Windows 11 does
# not install on it. README.md puts overlays/efi-tpm.pkr.hcl in its place.
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

  password = var.proxmox_password

  iso_url          = var.iso_path
  iso_checksum     = var.iso_checksum
  iso_storage_pool = var.proxmox_iso_pool
  unmount_iso      = true

  network_adapters {
    model  = "virtio"
    bridge = var.proxmox_bridge
  }

  disks {
    type              = "scsi"
    disk_size         = "128G"
    storage_pool      = var.proxmox_disk_pool
    storage_pool_type = "lvm"
    format            = "raw"
  }

  # "Press any key to boot from CD": the arrow does nothing where nobody asks.
  boot_wait    = "1s"
  boot_command = ["<up><wait><up><wait><up><wait><up><wait><up><wait><up><wait><up><wait><up>"]

  communicator         = "ssh"
  ssh_username         = "vega"
  ssh_private_key_file = var.ssh_private_key_file
  ssh_timeout          = "4h"
}

variable "proxmox_password" {
  description = "packer 1.6.6 knows no token"
  type        = string
  sensitive   = true
}

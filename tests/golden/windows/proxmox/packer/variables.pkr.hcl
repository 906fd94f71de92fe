# What `packer build` may be told. Secrets and addresses of the office have no value here.

variable "iso_path" {
  description = "the installation medium, a local file"
  type        = string
}

variable "iso_checksum" {
  description = "its digest, as sha256:HEX; vega-image build verifies it before"
  type        = string
}

variable "output_directory" {
  description = "the folder to make"
  type        = string
  default     = "output"
}

variable "serial_log" {
  description = "where COM1 is written"
  type        = string
  default     = "serial.log"
}

variable "ssh_private_key_file" {
  description = "the private half of the key that README.md puts on the CD"
  type        = string
  default     = ""
}

variable "product_key" {
  description = "empty for evaluation media; never written to a file of the tree"
  type        = string
  default     = ""
  sensitive   = true
}

variable "proxmox_url" {
  description = "address of the API"
  type        = string
}

variable "proxmox_node" {
  description = "the node that builds"
  type        = string
}

variable "proxmox_username" {
  description = "USER@REALM!TOKEN"
  type        = string
}

variable "proxmox_bridge" {
  description = "network bridge"
  type        = string
  default     = "vmbr0"
}

variable "proxmox_disk_pool" {
  description = "storage for disks"
  type        = string
}

variable "proxmox_iso_pool" {
  description = "storage for ISO files"
  type        = string
}

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

variable "headless" {
  description = "no window"
  type        = bool
  default     = true
}

variable "accelerator" {
  description = "kvm, or none"
  type        = string
  default     = "kvm"
}

variable "cpu" {
  description = "as QEMU's -cpu"
  type        = string
  default     = "host,hv_relaxed,hv_vapic,hv_spinlocks=0x1fff,hv_time"
}

variable "firmware" {
  description = "UEFI firmware in one file, as Debian's package ovmf has it"
  type        = string
  default     = "/usr/share/ovmf/OVMF.fd"
}

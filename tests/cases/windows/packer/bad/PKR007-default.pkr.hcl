variable "communicator" {
  type    = string
  default = "winrm"
}

source "qemu" "x" {
  communicator   = var.communicator # refuse: PKR007
  winrm_use_ntlm = true
  winrm_use_ssl  = false
  qemuargs = [["-serial", "file:${var.serial_log}"]]
}

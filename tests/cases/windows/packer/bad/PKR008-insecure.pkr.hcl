source "qemu" "x" {
  communicator   = "winrm"
  winrm_insecure = true # refuse: PKR008
  winrm_use_ntlm = true
  winrm_use_ssl  = true
  qemuargs = [["-serial", "file:${var.serial_log}"]]
}

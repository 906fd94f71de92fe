source "qemu" "x" {
  communicator   = "winrm" # refuse: PKR007
  winrm_use_ntlm = true
  qemuargs = [["-serial", "file:${var.serial_log}"]]
}

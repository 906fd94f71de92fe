source "qemu" "x" {
  communicator  = "winrm" # refuse: PKR007
  winrm_use_ssl = true
  qemuargs = [["-serial", "file:${var.serial_log}"]]
}

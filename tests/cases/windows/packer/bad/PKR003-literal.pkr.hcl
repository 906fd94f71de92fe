source "qemu" "x" {
  ssh_password         = "hunter2" # refuse: PKR003
  ssh_private_key_file = "./keys/id"
  qemuargs = [["-serial", "file:${var.serial_log}"]]
}

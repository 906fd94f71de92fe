build {
  provisioner "powershell" {
    environment_vars = [
      "ADMIN_PASSWORD=hunter2", # refuse: PKR003
      "ADMIN_PASSWORD=${var.admin_password}",
    ]
    inline = ["slmgr /ipk AAAAA-BBBBB-CCCCC-DDDDD-EEEEE"] # refuse: PKR003
  }
}

build {
  sources = ["source.qemu.windows"]

  provisioner "powershell" {
    inline = ["& D:\\scripts\\prepare.ps1"]
  }

  provisioner "windows-restart" {
    restart_timeout = "30m"
  }

  post-processor "manifest" {
    output = "manifest.json"
  }
}

build {
  sources = ["source.qemu.windows"]

  provisioner "powershell" {
    scripts = ["${path.root}/../media/vega/scripts/updates.ps1"]
  }

  provisioner "file" {
    source      = "answer/unattend-oobe.xml"
    destination = "C:/Windows/Temp/unattend-oobe.xml"
  }

  provisioner "windows-restart" {
    restart_timeout = "30m"
  }

  post-processor "manifest" {
    output = "manifest.json"
  }
}

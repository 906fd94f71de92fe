# For packer 1.7 and newer: takes the place of build.pkr.hcl (README.md).
build {
  sources = ["source.qemu.windows"]

  # OpenSSH answers before Windows Setup has ended.
  provisioner "powershell" {
    inline = ["& 'C:\\Program Files\\VegaImage\\scripts\\wait-setup.ps1'", "exit $LASTEXITCODE"]
  }

  # prepare.ps1 ran before anybody could log on; what it asked for takes effect at a restart.
  provisioner "windows-restart" {
    restart_timeout = "30m"
  }

  provisioner "powershell" {
    inline = ["& 'C:\\Program Files\\VegaImage\\scripts\\verify-payload.ps1'", "exit $LASTEXITCODE"]
  }

  provisioner "powershell" {
    inline = ["& 'C:\\Program Files\\VegaImage\\scripts\\updates.ps1'", "exit $LASTEXITCODE"]
  }

  provisioner "windows-update" {
    search_criteria = "IsInstalled=0 and Type='Software'"
    filters         = ["include:$true"]
    update_limit    = 50
  }

  provisioner "windows-restart" {
    restart_timeout = "1h"
  }

  # An empty key does nothing; a key reaches the guest by environment alone.
  provisioner "powershell" {
    environment_vars = ["VEGA_PRODUCT_KEY=${var.product_key}"]
    inline           = ["& 'C:\\Program Files\\VegaImage\\scripts\\license.ps1'", "exit $LASTEXITCODE"]
  }

  # The line on COM1 says that all before has ended well.
  provisioner "powershell" {
    inline = ["& 'C:\\Program Files\\VegaImage\\scripts\\announce.ps1'", "exit $LASTEXITCODE"]
  }

  post-processor "manifest" {
    output     = "${var.output_directory}/manifest.json"
    strip_path = true
  }
}

ssh_password = var.admin_password
winrm_password = "${var.admin_password}"
product_key = ""
publicKeyToken = "31bf3856ad364e35"
url = "https://${var.user}:${var.password}@example.invalid"

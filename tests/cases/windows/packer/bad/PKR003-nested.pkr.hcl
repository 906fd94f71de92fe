locals {
  login = {
    name           = "vega"
    admin_password = "hunter2" # refuse: PKR003
    "api_key" : "abc"          # refuse: PKR003
    token = "${var.token}"
  }
}

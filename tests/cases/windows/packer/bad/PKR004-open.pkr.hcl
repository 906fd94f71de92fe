variable "admin_password" { # refuse: PKR004
  type = string
}

variable "product_key" {
  type      = string
  default   = "abc" # refuse: PKR004
  sensitive = true
}

variable "api_token" { # refuse: PKR004
  sensitive = true
}

variable "good_secret" {
  type      = string
  default   = null
  sensitive = true
}

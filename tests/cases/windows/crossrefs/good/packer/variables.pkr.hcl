variable "iso_path" {
  type = string
}

variable "iso_checksum" {
  type = string
}

variable "output_directory" {
  type    = string
  default = "output"
}

variable "serial_log" {
  type    = string
  default = "serial.log"
}

variable "disk_gib" {
  type = number
}

variable "headless" {
  type = bool
}

variable "features" {
  type = list(string)
}

variable "product_key" {
  type      = string
  default   = ""
  sensitive = true
}

variable "admin_password" {
  type      = string
  sensitive = true
}

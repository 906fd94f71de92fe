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

variable "communicator" {
  type    = string
  default = "none"
}

variable "ssh_password" {
  type      = string
  default   = ""
  sensitive = true
}

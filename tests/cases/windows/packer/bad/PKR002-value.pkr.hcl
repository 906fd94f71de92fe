variable "x" {
  default = # refuse: PKR002
}

variable "x" {
  description = "no end # refuse: PKR002
}

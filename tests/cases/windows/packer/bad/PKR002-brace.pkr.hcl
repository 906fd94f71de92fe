variable "x" {
  type = string
} } # refuse: PKR002

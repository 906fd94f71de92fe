locals {
  # refuse-next: PKR003
  answer = <<-EOT
    <ProductKey>AAAAA-BBBBB-CCCCC-DDDDD-EEEEE</ProductKey>
  EOT
}

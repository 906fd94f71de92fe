locale      = "en-US"
product_key = "XXXXX" # refuse: PKR003

ssh_password = "hunter2" # refuse: SEC004
admin_passwd: 'hunter2' # refuse: SEC004
x = { "api_key": "it's one" } # refuse: SEC004
$Passphrase = "$user-1" # refuse: SEC004

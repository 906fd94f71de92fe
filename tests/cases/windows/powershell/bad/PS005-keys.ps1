#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

# ABCDE-12345-FGHIJ-67890-KLMNO # refuse: PS005
$pem = @'
-----BEGIN OPENSSH PRIVATE KEY----- # refuse: PS005
'@
$id = 'AKIAABCDEFGHIJ234567' # refuse: PS005

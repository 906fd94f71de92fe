#Requires -Version 5.1 # refuse: PS014
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

# refused at the first byte

#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Continue' # refuse: PS003

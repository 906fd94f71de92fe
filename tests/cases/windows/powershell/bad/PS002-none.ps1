#Requires -Version 5.1
$ErrorActionPreference = 'Stop'
Write-Output 'a' # refuse: PS002

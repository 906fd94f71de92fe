#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

if ($true) { # the brace is missed at the end
    Write-Output 'a' # refuse: PS001

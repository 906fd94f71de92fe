#Requires -Version 5.1
# Called by packer.

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

Write-Output 'nothing'

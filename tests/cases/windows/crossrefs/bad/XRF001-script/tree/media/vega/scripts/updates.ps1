#Requires -Version 5.1
# Called by packer.

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

Write-Output 'nothing'
& 'E:\vega\scripts\gone.ps1'
Invoke-Thing -Name 'lost.ps1' -Folder "$Drive\vega\tools\$Name\x.exe"

#Requires -Version 5.1
# Says orphan.ps1 itself.

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

Write-Output 'orphan.ps1'

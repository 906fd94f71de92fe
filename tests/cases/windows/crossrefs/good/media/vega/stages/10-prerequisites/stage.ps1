#Requires -Version 5.1
# Nothing.

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

Write-Output 'stage'

#Requires -Version 5.1
param([string]$Name = 'x')
$ErrorActionPreference = 'Stop'
$late = 1 # refuse: PS002
Set-StrictMode -Version 2.0
Write-Output $late

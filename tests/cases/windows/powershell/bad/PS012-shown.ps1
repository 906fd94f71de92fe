#Requires -Version 5.1
param([string]$Password, $Settings)
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'
Write-Host "the password is $Password" # refuse: PS012
Write-Verbose ('token: ' + $Settings.Token) # refuse: PS012
$Password | Out-Null
Add-Content -LiteralPath 'C:\log' -Value $Password # refuse: PS012

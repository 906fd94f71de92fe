#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

Get-Item 'a' && Get-Item 'b' # refuse: PS009
Get-Item 'a' || Get-Item 'b' # refuse: PS009

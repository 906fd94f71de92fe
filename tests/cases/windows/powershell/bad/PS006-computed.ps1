#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

$text = Get-Content -LiteralPath 'C:\x.txt' -Raw
Invoke-Expression $text # refuse: PS006
$block = [scriptblock]::Create($text) # refuse: PS006

#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

$x = $args[0] | ConvertFrom-Json -AsHashtable # refuse: PS009
$y = Join-Path $x 'a' 'b' # refuse: PS009
$z = Get-Uptime # refuse: PS009
if ($IsWindows) { # refuse: PS009
    Write-Output $y
}

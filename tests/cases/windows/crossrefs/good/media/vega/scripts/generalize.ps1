#Requires -Version 5.1
# Puts SetupComplete.cmd where Windows Setup looks for it.

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

$Setup = Join-Path $env:SystemRoot 'Setup\Scripts'
Copy-Item -LiteralPath 'C:\Program Files\VegaImage\firstboot\SetupComplete.cmd' -Destination $Setup -Force

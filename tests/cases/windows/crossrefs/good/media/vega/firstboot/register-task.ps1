#Requires -Version 5.1
# Registers the task.

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

$script = Join-Path $env:ProgramFiles 'VegaImage\firstboot\self-test.ps1'
Write-Output $script

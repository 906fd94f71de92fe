#Requires -Version 5.1
Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'
$stage = Join-Path $PSScriptRoot 'stage.json'
& (Join-Path $PSScriptRoot 'stage.ps1') -Stage $stage
exit $LASTEXITCODE

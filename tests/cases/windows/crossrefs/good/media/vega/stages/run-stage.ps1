#Requires -Version 5.1
# Runs one stage.
param([string]$Stage)

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

$Folder = 'C:\Program Files\VegaImage\stages\' + $Stage
$value = Get-Content -LiteralPath (Join-Path $Folder 'stage.json') -Raw | ConvertFrom-Json
& (Join-Path $Folder 'stage.ps1')
if ($LASTEXITCODE -ne 0) {
    exit 6
}
Write-Output $value.stage

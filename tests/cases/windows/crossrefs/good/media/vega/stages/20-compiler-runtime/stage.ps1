#Requires -Version 5.1
# Applies the patches.

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

$List = 'C:\Program Files\VegaImage\patches\clr\patches.json'
. (Join-Path $PSScriptRoot 'names.ps1')
$Table = Join-Path $PSScriptRoot 'data'
Write-Output ($List + $Table)

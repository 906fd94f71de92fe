#Requires -Version 5.1
# Says on COM1 that everything before has ended well; vega-image looks for this line.
[CmdletBinding()]
param(
    [string]$Programs = 'C:\Program Files\VegaImage'
)

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

. (Join-Path $PSScriptRoot 'tell.ps1')

$settings = Read-Json -Path (Join-Path $Programs 'settings.json')
Write-Line ('VEGA-IMAGE READY {0} {1}' -f $settings.image, $settings.version)
exit 0

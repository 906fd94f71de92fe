#Requires -Version 5.1
# The task.

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

Write-Output 'C:\Program Files\VegaImage\image.json'

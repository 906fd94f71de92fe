#Requires -Version 5.1
# Runs nothing of a stage.

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

Write-Output 'stage.json'

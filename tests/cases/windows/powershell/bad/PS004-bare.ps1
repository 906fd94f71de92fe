#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

cmake '--version' # refuse: PS004
ninja.exe '-v' # refuse: PS004
.\stage.ps1 # refuse: PS004

#Requires -Version 7.2 # refuse: PS010
#Requires -PSEdition Core # refuse: PS010
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

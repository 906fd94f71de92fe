#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

$a = (1 + 2) # well
$b = 1 + 2) # refuse: PS001

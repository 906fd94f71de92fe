#Requires -Version 5.1
Set-StrictMode -Version 2.0
Write-Output 'a' # refuse: PS003

#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

Start-Process -FilePath 'a.exe' -Wait # refuse: PS004
$process = Start-Process -FilePath 'a.exe' -Wait -PassThru # refuse: PS004
Write-Output $process.Id
$null = [System.Diagnostics.Process]::Start('a.exe') # refuse: PS004

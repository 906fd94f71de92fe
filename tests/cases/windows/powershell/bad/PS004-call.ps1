#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

$Git = 'C:\Program Files\Git\cmd\git.exe'
& $Git 'status' # refuse: PS004
& 'C:\Windows\System32\reg.exe' 'query' | Out-Null # refuse: PS004
& (Join-Path $env:SystemRoot 'System32\sc.exe') 'query' # refuse: PS004

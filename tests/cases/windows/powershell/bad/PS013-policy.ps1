#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

Set-ExecutionPolicy -ExecutionPolicy 'Bypass' -Scope 'LocalMachine' -Force # refuse: PS013
Set-ExecutionPolicy 'RemoteSigned' # refuse: PS013
Set-ExecutionPolicy -ExecutionPolicy 'Bypass' -Scope 'Process'

#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

$secure = ConvertTo-SecureString -String 'hunter2' -AsPlainText -Force # refuse: PS005
New-Thing -Password 'abc' -Force # refuse: PS005
New-Thing -ApiKey abc # refuse: PS005
Set-ItemProperty -LiteralPath 'HKLM:\X' -Name 'DefaultPassword' -Value 'abc' # refuse: PS005

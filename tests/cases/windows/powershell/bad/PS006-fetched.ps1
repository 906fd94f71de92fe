#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

$client = New-Object System.Net.WebClient
$text = $client.DownloadString($args[0]) # refuse: PS006

#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

$words = '-NoProfile -EncodedCommand {0}' -f $args[0] # refuse: PS006
powershell.exe '-NoProfile' -EncodedCommand $words # refuse: PS006
if ($LASTEXITCODE -ne 0) {
    throw $words
}

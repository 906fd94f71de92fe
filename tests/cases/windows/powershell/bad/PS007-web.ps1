#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

Invoke-WebRequest -Uri $args[0] -OutFile 'C:\x.zip' -UseBasicParsing # refuse: PS007
Start-BitsTransfer -Source $args[0] -Destination 'C:\x.zip' # refuse: PS007
$client = New-Object System.Net.WebClient
$client.DownloadFile($args[0], 'C:\x.zip') # refuse: PS007
certutil.exe '-urlcache' '-f' $args[0] 'C:\x.zip' # refuse: PS007
if ($LASTEXITCODE -ne 0) {
    throw 'certutil'
}

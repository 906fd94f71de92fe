#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

git 'fetch' # refuse: PS004
git 'checkout' 'main'
if ($LASTEXITCODE -ne 0) {
    throw 'git failed'
}

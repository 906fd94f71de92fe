#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

if ($env:CI -eq '1') {
    git 'fetch' # refuse: PS004
}
if ($LASTEXITCODE -ne 0) {
    throw 'git failed'
}
foreach ($name in @('a', 'b')) {
    git 'add' $name # refuse: PS004
}
$LASTEXITCODE
git 'gc' # refuse: PS004
$global:LASTEXITCODE = 0

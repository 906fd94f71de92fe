#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

function Invoke-Blind {
    param([scriptblock]$Do)
    & $Do
}
Invoke-Blind -Do { git 'fetch' } # refuse: PS004
git 'status' # refuse: PS004
function Test-Code {
    return $LASTEXITCODE
}

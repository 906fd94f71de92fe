#Requires -Version 5.1
# Run by Windows as SYSTEM in the pass specialize of each machine that starts the generalized
# image: what must be this machine's own, and B:, whose letter sysprep takes away.
[CmdletBinding()]
param()

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

. (Join-Path $PSScriptRoot 'tell.ps1')

$code = 1
try {
    foreach ($name in @('account.ps1', 'build-root.ps1')) {
        Invoke-Script -Path (Join-Path $PSScriptRoot $name)
    }
    $code = 0
}
catch {
    Write-Line ('VEGA-IMAGE FAILED first-boot: ' + $_.Exception.Message)
}
exit $code

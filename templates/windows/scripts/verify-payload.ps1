#Requires -Version 5.1
# Holds every file of payload.json against its SHA-256. A file that nobody has locked yet is named
# `unresolved`, one that is not there `absent`; with -All both are failures.
[CmdletBinding()]
param(
    [string]$Programs = 'C:\Program Files\VegaImage',
    [string]$Installers = 'C:\ProgramData\VegaImage\installers',
    [switch]$All
)

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

. (Join-Path $PSScriptRoot 'tell.ps1')

function Get-Verdict {
    param([object]$Entry)
    if ($null -eq $Entry.sha256) {
        return 'unresolved'
    }
    $path = Join-Path $Installers $Entry.file
    if (-not (Test-Path -LiteralPath $path)) {
        return 'absent'
    }
    $found = (Get-FileHash -LiteralPath $path -Algorithm 'SHA256').Hash.ToLowerInvariant()
    if ($found -cne $Entry.sha256) {
        return 'wrong'
    }
    return 'good'
}

$code = 1
try {
    $payload = Read-Json -Path (Join-Path $Programs 'payload.json')
    $code = 0
    foreach ($entry in @($payload.files)) {
        $verdict = Get-Verdict -Entry $entry
        Write-Line ('payload: {0} {1} {2}' -f $verdict, $entry.name, $entry.file)
        if ($verdict -eq 'wrong' -or ($All -and $verdict -ne 'good')) {
            $code = 4
        }
    }
}
catch {
    Write-Line ('VEGA-IMAGE FAILED verify-payload: ' + $_.Exception.Message)
    $code = 2
}
exit $code

#Requires -Version 5.1
# The only place that puts the inference service in or out of service. Whatever is not a whole,
# fitting pass holds it out; so does every error on the way.
[CmdletBinding()]
param(
    [string]$Verdict = 'C:\ProgramData\VegaImage\selftest\verdict.json',
    [switch]$Hold,
    [string]$Why = '',
    [string]$Service = 'VegaInference',
    [string]$Rule = 'VegaInference-In'
)

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

$Source = 'VegaImage'
$Policies = 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\Policies\System'
$Caption = 'VegaImage: this machine computes nothing yet'
$EventIds = @{
    'PROVEN' = 1000
    'RUNNING' = 1001
    'UNPROVEN' = 1002
    'STALE' = 1003
    'STOPPED' = 1004
    'FUTURE_DATED' = 1005
    'RECORD_DAMAGED' = 1006
    'REPORT_UNFIT' = 1007
    'FACTS_UNREADABLE' = 1008
    'FACTS_OLD' = 1009
    'TDR_RESET' = 1010
    'WRONG_NUMBERS' = 1100
    'CARD_ABSENT' = 1200
    'OTHER_CARD' = 1201
    'SEVERAL_CARDS' = 1202
    'CARD_PROBLEM' = 1203
    'CARD_LOST' = 1204
    'DRIVER_MISSING' = 1210
    'DRIVER_BRANCH' = 1211
    'VC_RUNTIME_MISSING' = 1220
    'VC_RUNTIME_OLD' = 1221
    'DLL_MISSING' = 1222
    'DLL_SHADOWED' = 1223
    'HIP_SDK' = 1224
    'HIP_PAL_GAP' = 1230
    'HIP_FAILED' = 1231
    'WRONG_ARCH' = 1232
    'XNACK_ON' = 1233
    'HELD' = 1900
    'UNKNOWN' = 1901
}

function Write-Outcome {
    param([string]$Code, [string]$Text)
    $type = 'Error'
    if ($Code -eq 'PROVEN') {
        $type = 'Information'
    }
    elseif ($Code -eq 'RUNNING' -or $Code -eq 'HELD') {
        $type = 'Warning'
    }
    try {
        Write-EventLog -LogName 'Application' -Source $Source -EventId $EventIds[$Code] -EntryType $type -Message ($Code + ': ' + $Text)
    }
    catch {
        # A full log must not keep the service open, nor closed.
        Write-Warning ('no event was written: ' + $_.Exception.Message)
    }
    Write-Output ($Code + ': ' + $Text)
}

function Set-Notice {
    param([string]$Text)
    $key = Get-Item -LiteralPath $Policies
    $before = [string]$key.GetValue('legalnoticecaption', '')
    if ($before -ne '' -and $before -ne $Caption) {
        # The office's own notice stays.
        return
    }
    $shown = ''
    if ($Text -ne '') {
        $shown = $Caption
    }
    Set-ItemProperty -LiteralPath $Policies -Name 'legalnoticecaption' -Value $shown
    Set-ItemProperty -LiteralPath $Policies -Name 'legalnoticetext' -Value $Text
}

function Get-RuleOrNone {
    @(Get-NetFirewallRule -DisplayName $Rule -ErrorAction 'SilentlyContinue')
}

function Close-Service {
    # Each step is tried whatever became of the one before.
    $errors = @()
    try {
        foreach ($one in @(Get-RuleOrNone)) {
            Disable-NetFirewallRule -InputObject $one
        }
    }
    catch {
        $errors += $_.Exception.Message
    }
    $found = Get-Service -Name $Service -ErrorAction 'SilentlyContinue'
    if ($null -ne $found) {
        try {
            Set-Service -Name $Service -StartupType 'Disabled'
        }
        catch {
            $errors += $_.Exception.Message
        }
        try {
            Stop-Service -Name $Service -Force
        }
        catch {
            $errors += $_.Exception.Message
        }
    }
    if ($errors.Count -gt 0) {
        throw ('the service may still be open: ' + ($errors -join '; '))
    }
}

function Open-Service {
    $found = Get-Service -Name $Service -ErrorAction 'SilentlyContinue'
    if ($null -eq $found) {
        Write-Output ('there is no service ' + $Service + ' yet')
        return
    }
    # Manual, never automatic: at the next start nothing runs before the gate has spoken.
    Set-Service -Name $Service -StartupType 'Manual'
    Start-Service -Name $Service
    foreach ($one in @(Get-RuleOrNone)) {
        Enable-NetFirewallRule -InputObject $one
    }
}

function Read-Verdict {
    $value = Get-Content -LiteralPath $Verdict -Raw -Encoding 'UTF8' | ConvertFrom-Json
    if ($value.schema -cne 'vega-gate-verdict/1') {
        throw 'the verdict is of no known schema'
    }
    return $value
}

function Test-Pass {
    param($Value)
    $whole = $Value.state -ceq 'pass' -and $Value.reason -ceq 'proven' -and $Value.code -ceq 'PROVEN'
    return $whole -and $Value.exit -eq 0 -and $Value.recorded -eq $false
}

function Invoke-Hold {
    Close-Service
    Set-Notice -Text ('The self-test has not passed: ' + $Why)
    Write-Outcome -Code 'HELD' -Text $Why
}

function Invoke-Verdict {
    $value = Read-Verdict
    $code = [string]$value.code
    if (-not $EventIds.ContainsKey($code)) {
        $code = 'UNKNOWN'
    }
    $text = '{0} Next: {1}' -f $value.detail, $value.hint
    if (Test-Pass -Value $value) {
        Open-Service
        Set-Notice -Text ''
    }
    else {
        Close-Service
        Set-Notice -Text ('{0}: {1}' -f $code, $text)
    }
    Write-Outcome -Code $code -Text $text
}

$exitCode = 1
try {
    if ($Hold) {
        Invoke-Hold
    }
    else {
        Invoke-Verdict
    }
    $exitCode = 0
}
catch {
    $fault = $_.Exception.Message
    try {
        Close-Service
        Set-Notice -Text ('The verdict could not be applied: ' + $fault)
    }
    catch {
        $fault = $fault + '; ' + $_.Exception.Message
    }
    Write-Outcome -Code 'HELD' -Text $fault
}
exit $exitCode

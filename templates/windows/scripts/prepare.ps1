#Requires -Version 5.1
# Run by Windows Setup as SYSTEM in the pass specialize, from the CD, before anybody can log on:
# holds the machine out of service first, then makes it what Packer and Ansible can reach.
[CmdletBinding()]
param(
    [string]$Programs = 'C:\Program Files\VegaImage',
    [string]$State = 'C:\ProgramData\VegaImage'
)

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

. (Join-Path $PSScriptRoot 'tell.ps1')

$Vega = Split-Path -Parent $PSScriptRoot
$Medium = Split-Path -Parent $Vega
$System32 = Join-Path $env:SystemRoot 'System32'
$HighPerformance = '8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c'

function Register-Gate {
    # Makes both folders with their rights, too: whatever is copied later inherits them.
    $settings = Read-Json -Path (Join-Path $Vega 'settings.json')
    $words = @('-Port', [string]$settings.port, '-LimitMinutes', [string]$settings.limit_minutes)
    Invoke-Script -Path (Join-Path $Vega 'firstboot\register-task.ps1') -Arguments $words
}

function Copy-Tree {
    param([string]$From, [string]$To)
    if (-not (Test-Path -LiteralPath $From)) {
        return
    }
    # robocopy: 0 to 7 mean that all that was to be copied has been copied.
    $words = @($From, $To, '/E', '/R:2', '/W:2', '/NP', '/NFL', '/NDL')
    Invoke-Program -FilePath (Join-Path $System32 'robocopy.exe') -Arguments $words -Good @(0, 1, 2, 3, 4, 5, 6, 7)
}

function Copy-Medium {
    foreach ($name in @('firstboot', 'scripts', 'stages', 'patches')) {
        Copy-Tree -From (Join-Path $Vega $name) -To (Join-Path $Programs $name)
    }
    Copy-Tree -From (Join-Path $Medium 'answer') -To (Join-Path $Programs 'answer')
    Copy-Tree -From (Join-Path $Vega 'installers') -To (Join-Path $State 'installers')
    foreach ($name in @('image.json', 'settings.json', 'payload.json', 'vega-selftest.pyz', 'authorized_keys')) {
        $file = Join-Path $Vega $name
        if (Test-Path -LiteralPath $file) {
            Copy-Item -LiteralPath $file -Destination (Join-Path $Programs $name) -Force
        }
    }
    $folder = Join-Path $env:SystemRoot 'Setup\Scripts'
    $null = New-Item -ItemType 'Directory' -Path $folder -Force
    Copy-Item -LiteralPath (Join-Path $Vega 'firstboot\SetupComplete.cmd') -Destination $folder -Force
}

function Add-Driver {
    $folder = Join-Path $Vega 'drivers'
    if (-not (Test-Path -LiteralPath $folder)) {
        return
    }
    # 259: all of them were there already; 3010: a restart will finish it.
    $words = @('/add-driver', (Join-Path $folder '*.inf'), '/subdirs', '/install')
    Invoke-Program -FilePath (Join-Path $System32 'pnputil.exe') -Arguments $words -Good @(0, 259, 3010)
}

function Set-Power {
    $powercfg = Join-Path $System32 'powercfg.exe'
    Invoke-Program -FilePath $powercfg -Arguments @('/setactive', $HighPerformance)
    foreach ($name in @('standby-timeout-ac', 'hibernate-timeout-ac', 'disk-timeout-ac')) {
        Invoke-Program -FilePath $powercfg -Arguments @('/change', $name, '0')
    }
}

$code = 1
try {
    Register-Gate
    Write-Line 'prepare: held out of service until the self-test passes'
    Copy-Medium
    # Paths of a native build are longer than 260 characters.
    Set-Registry -Path 'HKLM:\SYSTEM\CurrentControlSet\Control\FileSystem' -Name 'LongPathsEnabled' -Value 1
    Set-Power
    Add-Driver
    foreach ($name in @('build-root.ps1', 'account.ps1', 'transport.ps1')) {
        Write-Line ('prepare: ' + $name)
        Invoke-Script -Path (Join-Path $Programs ('scripts\' + $name))
    }
    Write-Line 'prepare: done'
    $code = 0
}
catch {
    Write-Line ('VEGA-IMAGE FAILED prepare: ' + $_.Exception.Message)
}
exit $code

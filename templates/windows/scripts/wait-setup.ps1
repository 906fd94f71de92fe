#Requires -Version 5.1
# OpenSSH answers before Windows Setup has ended, and a restart in the middle would break it:
# waits until Setup says that the image is complete.
[CmdletBinding()]
param(
    [int]$LimitMinutes = 45
)

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

. (Join-Path $PSScriptRoot 'tell.ps1')

function Test-Ended {
    $image = Get-Item -LiteralPath 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\Setup\State'
    $setup = Get-Item -LiteralPath 'HKLM:\SYSTEM\Setup'
    $complete = $image.GetValue('ImageState', '') -eq 'IMAGE_STATE_COMPLETE'
    $busy = $setup.GetValue('SystemSetupInProgress', 0) + $setup.GetValue('OOBEInProgress', 0)
    return $complete -and $busy -eq 0
}

$until = [DateTime]::UtcNow.AddMinutes($LimitMinutes)
while (-not (Test-Ended)) {
    if ([DateTime]::UtcNow -gt $until) {
        Write-Line ('VEGA-IMAGE FAILED wait-setup: Setup has not ended after {0} minutes' -f $LimitMinutes)
        exit 6
    }
    Start-Sleep -Seconds 10
}
Write-Line 'setup: Windows Setup has ended'
exit 0

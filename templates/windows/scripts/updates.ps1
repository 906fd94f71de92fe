#Requires -Version 5.1
# Who decides on updates, by policy, as the role power_update of playbooks/ does. Nothing comes by
# itself; with the policy wsus the role names the office's server later.
[CmdletBinding()]
param(
    [string]$Programs = 'C:\Program Files\VegaImage'
)

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

. (Join-Path $PSScriptRoot 'tell.ps1')

$Policies = 'HKLM:\SOFTWARE\Policies\Microsoft\Windows\WindowsUpdate'

$code = 1
try {
    $settings = Read-Json -Path (Join-Path $Programs 'settings.json')
    Set-Registry -Path (Join-Path $Policies 'AU') -Name 'NoAutoUpdate' -Value 1
    if ($settings.updates.block_drivers) {
        # A newer branch of the driver drops the card.
        Set-Registry -Path $Policies -Name 'ExcludeWUDriversInQualityUpdate' -Value 1
        Set-Registry -Path 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\DriverSearching' -Name 'SearchOrderConfig' -Value 0
    }
    Write-Line ('updates: policy ' + $settings.updates.policy)
    $code = 0
}
catch {
    Write-Line ('VEGA-IMAGE FAILED updates: ' + $_.Exception.Message)
}
exit $code

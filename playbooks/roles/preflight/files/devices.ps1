#Requires -Version 5.1
# Lists what PCI shows of AMD's Vega 20 cards. Reads only; the role preflight runs it.
[CmdletBinding()]
param()

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

function Get-DriverVersion {
    param([string]$InstanceId)
    $found = Get-PnpDeviceProperty -InstanceId $InstanceId -KeyName 'DEVPKEY_Device_DriverVersion' -ErrorAction 'SilentlyContinue'
    if ($null -eq $found) {
        return ''
    }
    if ($null -eq $found.PSObject.Properties['Data']) {
        return ''
    }
    return [string]$found.Data
}

# By vendor and not by class: a card without a driver has no class.
$rows = @()
foreach ($device in @(Get-PnpDevice -PresentOnly)) {
    if ($device.InstanceId -like 'PCI\VEN_1002&DEV_66A*') {
        $rows += @{
            instance = [string]$device.InstanceId
            status = [string]$device.Status
            driver = Get-DriverVersion -InstanceId $device.InstanceId
        }
    }
}
$Ansible.Result = $rows
$Ansible.Changed = $false

# Lists what PCI shows of AMD's display adapters. Reads only.
[CmdletBinding()]
param()

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

function Get-DeviceValue {
    param(
        [string] $InstanceId,
        [string] $KeyName
    )
    $property = Get-PnpDeviceProperty -InstanceId $InstanceId -KeyName $KeyName
    if ($null -eq $property) {
        return ''
    }
    return [string] $property.Data
}

# By vendor and not by class: a card without a driver has no class.
$devices = @(Get-PnpDevice -PresentOnly | Where-Object { $_.InstanceId -like 'PCI\VEN_1002&DEV_66*' })
$rows = @()
foreach ($device in $devices) {
    $rows += @{
        instance = [string] $device.InstanceId
        status = [string] $device.Status
        problem = [string] $device.Problem
        driver = (Get-DeviceValue -InstanceId $device.InstanceId -KeyName 'DEVPKEY_Device_DriverVersion')
    }
}
$Ansible.Result = $rows
$Ansible.Changed = $false

#Requires -Version 5.1
# Writes what `vega-selftest gate` reads; judges nothing. Formats: docs/windows-gate.md.
# A fact that cannot be read leaves no file behind, so that an older one is never taken for it.
[CmdletBinding()]
param(
    [string]$Facts = 'C:\ProgramData\VegaImage\selftest\facts',
    [string]$HipInfo = 'C:\Program Files\VegaImage\rocm\bin\hipInfo.exe',
    [string]$ImageFile = 'C:\Program Files\VegaImage\image.json',
    [int]$HipTimeoutSeconds = 120
)

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

$script:SetName = [DateTime]::UtcNow.ToString('yyyyMMdd-HHmmss') + '-' + [Guid]::NewGuid().ToString('N').Substring(0, 8)
$script:Failed = 0
$script:Loaded = @()
$System32 = Join-Path $env:SystemRoot 'System32'
$CurrentVersion = 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion'
$Prefetch = 'HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters'
$GraphicsDrivers = 'HKLM:\SYSTEM\CurrentControlSet\Control\GraphicsDrivers'
$ClassKeys = 'HKLM:\SYSTEM\CurrentControlSet\Control\Class'

function Write-Whole {
    param([string]$Path, [byte[]]$Bytes)
    $temporary = $Path + '.' + $script:SetName + '.tmp'
    $stream = New-Object System.IO.FileStream($temporary, [System.IO.FileMode]::CreateNew)
    try {
        $stream.Write($Bytes, 0, $Bytes.Length)
        $stream.Flush($true)
    }
    finally {
        $stream.Dispose()
    }
    if (Test-Path -LiteralPath $Path) {
        # A plain $null would arrive as an empty text.
        [System.IO.File]::Replace($temporary, $Path, [NullString]::Value)
    }
    else {
        [System.IO.File]::Move($temporary, $Path)
    }
}

function Write-Fact {
    param([string]$Name, [System.Collections.IDictionary]$Fields)
    $value = [ordered]@{ schema = 'vega-facts/1'; set = $script:SetName }
    foreach ($field in $Fields.Keys) {
        $value[$field] = $Fields[$field]
    }
    $text = ConvertTo-Json -InputObject $value -Depth 6
    $encoding = New-Object System.Text.UTF8Encoding($false)
    Write-Whole -Path (Join-Path $Facts $Name) -Bytes $encoding.GetBytes($text + "`n")
}

function Save-Fact {
    param([string]$Name, [scriptblock]$Read)
    try {
        Write-Fact -Name $Name -Fields (& $Read)
    }
    catch {
        $script:Failed = $script:Failed + 1
        $path = Join-Path $Facts $Name
        if (Test-Path -LiteralPath $path) {
            Remove-Item -LiteralPath $path -Force
        }
        Write-Warning ('{0}: {1}' -f $Name, $_.Exception.Message)
    }
}

function Get-UnixSeconds {
    param([DateTime]$Moment)
    $offset = New-Object System.DateTimeOffset($Moment.ToUniversalTime())
    return $offset.ToUnixTimeSeconds()
}

function Get-RegistryValue {
    param([string]$Key, [string]$Name)
    if (-not (Test-Path -LiteralPath $Key)) {
        return $null
    }
    return (Get-Item -LiteralPath $Key).GetValue($Name, $null)
}

function Get-DeviceProperty {
    param([string]$InstanceId, [string]$KeyName)
    $found = Get-PnpDeviceProperty -InstanceId $InstanceId -KeyName $KeyName -ErrorAction 'SilentlyContinue'
    if ($null -eq $found) {
        return $null
    }
    if ($null -eq $found.PSObject.Properties['Data']) {
        return $null
    }
    return $found.Data
}

function Get-Text {
    param($Value)
    if ($null -eq $Value) {
        return $null
    }
    return [string]$Value
}

function Get-Display {
    # A card without a driver belongs to no class yet.
    Get-PnpDevice | Where-Object { $_.Class -eq 'Display' -or $_.InstanceId -like 'PCI\VEN_1002&DEV_66A*' }
}

function Get-FileVersion {
    param([string]$Path)
    $info = [System.Diagnostics.FileVersionInfo]::GetVersionInfo($Path)
    if ($null -eq $info.FileVersion) {
        return $null
    }
    return '{0}.{1}.{2}.{3}' -f $info.FileMajorPart, $info.FileMinorPart, $info.FileBuildPart, $info.FilePrivatePart
}

function Get-Copy {
    param([string]$Folder, [string]$Place)
    if (-not (Test-Path -LiteralPath $Folder -PathType 'Container')) {
        return
    }
    foreach ($pattern in @('amdhip64*.dll', 'amd_comgr*.dll')) {
        foreach ($file in @(Get-ChildItem -LiteralPath $Folder -Filter $pattern -File)) {
            [ordered]@{
                name = $file.Name
                path = $file.FullName
                place = $Place
                sha256 = (Get-FileHash -LiteralPath $file.FullName -Algorithm 'SHA256').Hash.ToLowerInvariant()
                version = Get-FileVersion -Path $file.FullName
            }
        }
    }
}

function Get-PathFolder {
    $taken = @((Split-Path -Parent $HipInfo).TrimEnd('\'), $System32.TrimEnd('\'))
    foreach ($entry in $env:Path.Split(';')) {
        $folder = [Environment]::ExpandEnvironmentVariables($entry.Trim().Trim('"')).TrimEnd('\')
        if ($folder -ne '' -and $taken -notcontains $folder) {
            $taken += $folder
            $folder
        }
    }
}

function Invoke-HipInfo {
    # Returns exit code, whether it ran out of time, why it did not start; notes loaded modules.
    $result = @{ exit_code = $null; timed_out = $false; why = '' }
    $out = Join-Path $Facts 'hipinfo.out.tmp'
    $err = Join-Path $Facts 'hipinfo.err.tmp'
    try {
        $start = @{
            FilePath = $HipInfo
            WorkingDirectory = Split-Path -Parent $HipInfo
            RedirectStandardOutput = $out
            RedirectStandardError = $err
            NoNewWindow = $true
            PassThru = $true
        }
        $process = Start-Process @start
        # Without a look at the handle .NET forgets the exit code.
        $null = $process.Handle
        Watch-Process -Process $process -Result $result
    }
    catch {
        $result.why = $_.Exception.Message -replace '\s+', ' '
    }
    $bytes = New-Object System.Collections.Generic.List[byte]
    foreach ($file in @($out, $err)) {
        if (Test-Path -LiteralPath $file) {
            $bytes.AddRange([System.IO.File]::ReadAllBytes($file))
            Remove-Item -LiteralPath $file -Force
        }
    }
    $path = Join-Path $Facts 'hipinfo.txt'
    Write-Whole -Path $path -Bytes $bytes.ToArray()
    $result.sha256 = (Get-FileHash -LiteralPath $path -Algorithm 'SHA256').Hash.ToLowerInvariant()
    return $result
}

function Watch-Process {
    param([System.Diagnostics.Process]$Process, [hashtable]$Result)
    $until = [DateTime]::UtcNow.AddSeconds($HipTimeoutSeconds)
    while (-not $Process.WaitForExit(20)) {
        try {
            $Process.Refresh()
            foreach ($module in @($Process.Modules)) {
                if ($module.ModuleName -match '^(amdhip64|amd_comgr).*\.dll$' -and $script:Loaded -notcontains $module.FileName) {
                    $script:Loaded += $module.FileName
                }
            }
        }
        catch {
            # It ended while we looked.
            Write-Verbose $_.Exception.Message
        }
        if ([DateTime]::UtcNow -gt $until) {
            $Result.timed_out = $true
            $Result.why = 'killed after {0} s' -f $HipTimeoutSeconds
            $Process.Kill()
            $Process.WaitForExit()
            return
        }
    }
    $Result.exit_code = $Process.ExitCode
}

function Get-BootWord {
    # The record of this boot's start, else the boot counter.
    $started = @(Get-WinEvent -FilterHashtable @{ LogName = 'System'; ProviderName = 'Microsoft-Windows-Kernel-General'; Id = 12 } -MaxEvents 1 -ErrorAction 'SilentlyContinue')
    if ($started.Count -gt 0) {
        return 'event-' + $started[0].RecordId
    }
    $counter = Get-RegistryValue -Key $Prefetch -Name 'BootId'
    if ($null -eq $counter) {
        throw 'this boot has no name: neither event 12 nor BootId'
    }
    return 'counter-' + $counter
}

function Get-DisplayReset {
    try {
        $filter = @{ LogName = 'System'; Id = 4101; StartTime = (Get-Date).AddDays(-30) }
        foreach ($found in @(Get-WinEvent -FilterHashtable $filter)) {
            if ($found.ProviderName -eq 'Display') {
                Get-UnixSeconds -Moment $found.TimeCreated
            }
        }
    }
    catch {
        # No such event is an error to Get-WinEvent, and the best of news to us.
        if ($_.FullyQualifiedErrorId -notlike 'NoMatchingEventsFound*') {
            throw
        }
    }
}

function Get-Vbios {
    param([string]$InstanceId)
    $driverKey = Get-DeviceProperty -InstanceId $InstanceId -KeyName 'DEVPKEY_Device_Driver'
    if ($null -eq $driverKey) {
        return $null
    }
    $value = Get-RegistryValue -Key (Join-Path $ClassKeys $driverKey) -Name 'HardwareInformation.BiosString'
    if ($value -is [byte[]]) {
        $value = [System.Text.Encoding]::Unicode.GetString($value)
    }
    if ($null -eq $value) {
        return $null
    }
    return ([string]$value).Trim([char]0, ' ')
}

if (-not (Test-Path -LiteralPath $Facts)) {
    $null = New-Item -ItemType 'Directory' -Path $Facts -Force
}

Save-Fact -Name 'pnp.json' -Read {
    $devices = @(foreach ($device in @(Get-Display)) {
        $bus = Get-DeviceProperty -InstanceId $device.InstanceId -KeyName 'DEVPKEY_Device_BusNumber'
        if ($null -ne $bus) {
            $bus = [long]$bus
        }
        [ordered]@{
            instance_id = $device.InstanceId
            name = [string]$device.FriendlyName
            present = [bool]$device.Present
            problem = [int]$device.ConfigManagerErrorCode
            bus = $bus
        }
    })
    @{ devices = $devices }
}

Save-Fact -Name 'driver.json' -Read {
    $drivers = @(foreach ($device in @(Get-Display)) {
        [ordered]@{
            instance_id = $device.InstanceId
            version = Get-Text (Get-DeviceProperty -InstanceId $device.InstanceId -KeyName 'DEVPKEY_Device_DriverVersion')
            provider = Get-Text (Get-DeviceProperty -InstanceId $device.InstanceId -KeyName 'DEVPKEY_Device_DriverProvider')
        }
    })
    $sdkRoot = Join-Path $env:ProgramFiles 'AMD\ROCm'
    $sdks = @()
    if (Test-Path -LiteralPath $sdkRoot) {
        $sdks = @(foreach ($folder in @(Get-ChildItem -LiteralPath $sdkRoot -Directory)) {
            [ordered]@{ version = $folder.Name; path = $folder.FullName }
        })
    }
    @{ drivers = $drivers; hip_sdks = $sdks }
}

Save-Fact -Name 'hipinfo.json' -Read {
    $ran = Invoke-HipInfo
    @{ exit_code = $ran.exit_code; timed_out = $ran.timed_out; why = $ran.why; sha256 = $ran.sha256 }
}

# After hipInfo, whose modules it tells.
Save-Fact -Name 'dlls.json' -Read {
    $folder = Split-Path -Parent $HipInfo
    $copies = @(Get-Copy -Folder $folder -Place 'program') + @(Get-Copy -Folder $System32 -Place 'system32')
    foreach ($entry in @(Get-PathFolder)) {
        $copies += @(Get-Copy -Folder $entry -Place 'path')
    }
    @{ folder = $folder; copies = $copies; loaded = $script:Loaded }
}

Save-Fact -Name 'vcruntime.json' -Read {
    $files = @(foreach ($name in @('vcruntime140.dll', 'vcruntime140_1.dll', 'msvcp140.dll')) {
        $path = Join-Path $System32 $name
        $version = $null
        if (Test-Path -LiteralPath $path) {
            $version = Get-FileVersion -Path $path
        }
        [ordered]@{ name = $name; version = $version }
    })
    @{ files = $files }
}

Save-Fact -Name 'os.json' -Read {
    $key = Get-Item -LiteralPath $CurrentVersion
    $parts = @(foreach ($name in @('CurrentMajorVersionNumber', 'CurrentMinorVersionNumber', 'CurrentBuildNumber', 'UBR')) {
        $key.GetValue($name)
    })
    $booted = (Get-CimInstance -ClassName 'Win32_OperatingSystem').LastBootUpTime
    @{
        build = $parts -join '.'
        boot = Get-BootWord
        booted = Get-UnixSeconds -Moment $booted
        gathered = Get-UnixSeconds -Moment ([DateTime]::UtcNow)
    }
}

Save-Fact -Name 'vbios.json' -Read {
    $adapters = @(foreach ($device in @(Get-Display)) {
        [ordered]@{ instance_id = $device.InstanceId; version = Get-Vbios -InstanceId $device.InstanceId }
    })
    @{ adapters = $adapters }
}

Save-Fact -Name 'tdr.json' -Read {
    @{
        level = Get-RegistryValue -Key $GraphicsDrivers -Name 'TdrLevel'
        delay = Get-RegistryValue -Key $GraphicsDrivers -Name 'TdrDelay'
        ddi_delay = Get-RegistryValue -Key $GraphicsDrivers -Name 'TdrDdiDelay'
    }
}

Save-Fact -Name 'events.json' -Read {
    @{ display_resets = @(Get-DisplayReset) }
}

Save-Fact -Name 'image.json' -Read {
    $image = Get-Content -LiteralPath $ImageFile -Raw -Encoding 'UTF8' | ConvertFrom-Json
    @{ image = $image.image; profile = $image.profile; cards = @($image.cards); hip_dlls = $image.hip_dlls }
}

if ($script:Failed -gt 0) {
    Write-Warning ('{0} of the facts could not be read' -f $script:Failed)
    exit 1
}
exit 0

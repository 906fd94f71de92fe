#Requires -Version 5.1
# Makes the folders, the event source and the task \VegaImage\SelfTest; puts the service out of
# service. May be run again: only what differs is changed. Starts nothing and restarts nothing.
# Its one line of output is JSON and says what was changed; with -Check, what would be.
# -Settled is for a machine past its first boot: what the gate has opened stays open, and a task
# that is right is not armed for a run in three minutes.
[CmdletBinding()]
param(
    [string]$Programs = 'C:\Program Files\VegaImage',
    [string]$State = 'C:\ProgramData\VegaImage',
    [string]$Service = 'VegaInference',
    [string]$Rule = 'VegaInference-In',
    [int]$Port = 9000,
    [switch]$Settled,
    [switch]$Check,
    [int]$LimitMinutes = 300
)

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

# By number: the names of these accounts differ by language.
$System = 'S-1-5-18'
$Administrators = 'S-1-5-32-544'
$Users = 'S-1-5-32-545'
$Power = 'HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager\Power'
$PowerShell = Join-Path $env:SystemRoot 'System32\WindowsPowerShell\v1.0\powershell.exe'
$Rights = @{ $System = 'FullControl'; $Administrators = 'FullControl'; $Users = 'ReadAndExecute' }
$Words = '-NoProfile -NonInteractive -ExecutionPolicy Bypass -File "{0}"' -f (Join-Path $Programs 'firstboot\self-test.ps1')
$script:Changes = @()

function Invoke-Change {
    param([string]$What, [scriptblock]$Do)
    $script:Changes += $What
    if (-not $Check) {
        & $Do
    }
}

function Add-Folder {
    param([string]$Path)
    if (-not (Test-Path -LiteralPath $Path -PathType 'Container')) {
        Invoke-Change -What ('folder ' + $Path) -Do {
            $null = New-Item -ItemType 'Directory' -Path $Path -Force
        }
    }
}

function Test-FolderAccess {
    param([string]$Path)
    if (-not (Test-Path -LiteralPath $Path)) {
        return $false
    }
    $kind = [System.Security.Principal.SecurityIdentifier]
    $access = Get-Acl -LiteralPath $Path
    $entries = @($access.GetAccessRules($true, $true, $kind))
    if (-not $access.AreAccessRulesProtected -or $access.GetOwner($kind).Value -ne $Administrators) {
        return $false
    }
    $seen = @()
    foreach ($entry in $entries) {
        $sid = $entry.IdentityReference.Value
        if (-not $Rights.ContainsKey($sid) -or [string]$entry.AccessControlType -ne 'Allow') {
            return $false
        }
        $wanted = New-FolderEntry -Sid $sid
        if ([int]$entry.FileSystemRights -ne [int]$wanted.FileSystemRights) {
            return $false
        }
        if ($entry.InheritanceFlags -ne $wanted.InheritanceFlags -or $entry.PropagationFlags -ne $wanted.PropagationFlags) {
            return $false
        }
        $seen += $sid
    }
    return $seen.Count -eq $Rights.Count -and @($seen | Select-Object -Unique).Count -eq $Rights.Count
}

function New-FolderEntry {
    param([string]$Sid)
    $account = New-Object System.Security.Principal.SecurityIdentifier($Sid)
    return New-Object System.Security.AccessControl.FileSystemAccessRule($account, $Rights[$Sid], 'ContainerInherit,ObjectInherit', 'None', 'Allow')
}

function Set-FolderAccess {
    # SYSTEM and Administrators write, users read, nothing is inherited from above.
    param([string]$Path)
    Add-Folder -Path $Path
    if (Test-FolderAccess -Path $Path) {
        return
    }
    $access = New-Object System.Security.AccessControl.DirectorySecurity
    $access.SetAccessRuleProtection($true, $false)
    $access.SetOwner((New-Object System.Security.Principal.SecurityIdentifier($Administrators)))
    foreach ($sid in $Rights.Keys) {
        $access.AddAccessRule((New-FolderEntry -Sid $sid))
    }
    Invoke-Change -What ('rights of ' + $Path) -Do {
        Set-Acl -LiteralPath $Path -AclObject $access
    }
}

function Register-Source {
    if (-not [System.Diagnostics.EventLog]::SourceExists('VegaImage')) {
        Invoke-Change -What 'event source VegaImage' -Do {
            New-EventLog -LogName 'Application' -Source 'VegaImage'
        }
    }
}

function Close-Everything {
    $found = Get-Service -Name $Service -ErrorAction 'SilentlyContinue'
    if ($null -ne $found -and ([string]$found.StartType -ne 'Disabled' -or [string]$found.Status -ne 'Stopped')) {
        Invoke-Change -What ('service ' + $Service) -Do {
            Set-Service -Name $Service -StartupType 'Disabled'
            Stop-Service -Name $Service -Force
        }
    }
    $rules = @(Get-NetFirewallRule -DisplayName $Rule -ErrorAction 'SilentlyContinue')
    if ($rules.Count -eq 0) {
        Invoke-Change -What ('firewall rule ' + $Rule) -Do {
            $null = New-NetFirewallRule -Name $Rule -DisplayName $Rule -Direction 'Inbound' -Action 'Allow' -Protocol 'TCP' -LocalPort $Port -RemoteAddress 'LocalSubnet' -Enabled 'False'
        }
    }
    foreach ($one in $rules) {
        if ([string]$one.Enabled -ne 'False') {
            Invoke-Change -What ('firewall rule ' + $Rule) -Do {
                Disable-NetFirewallRule -InputObject $one
            }
        }
    }
}

function Disable-FastStartup {
    # With it Windows wakes an old session, and no startup task would run.
    if ((Get-Item -LiteralPath $Power).GetValue('HiberbootEnabled', 1) -ne 0) {
        Invoke-Change -What 'fast startup' -Do {
            Set-ItemProperty -LiteralPath $Power -Name 'HiberbootEnabled' -Value 0 -Type 'DWord'
        }
    }
}

function Test-SelfTest {
    # By what Windows exports: there the account stands by number, and times as XML writes them.
    $task = Get-ScheduledTask -TaskPath '\VegaImage\' -TaskName 'SelfTest' -ErrorAction 'SilentlyContinue'
    if ($null -eq $task -or [string]$task.State -eq 'Disabled') {
        return $false
    }
    $xml = [xml](Export-ScheduledTask -TaskPath '\VegaImage\' -TaskName 'SelfTest')
    $limit = New-TimeSpan -Minutes $LimitMinutes
    $wanted = @{
        Command = $PowerShell
        Arguments = $Words
        UserId = $System
        RunLevel = 'HighestAvailable'
        StartWhenAvailable = 'true'
        DisallowStartIfOnBatteries = 'false'
        StopIfGoingOnBatteries = 'false'
        ExecutionTimeLimit = [System.Xml.XmlConvert]::ToString($limit)
    }
    foreach ($name in $wanted.Keys) {
        $found = @($xml.SelectNodes('//*[local-name()="' + $name + '"]'))
        if ($found.Count -ne 1 -or $found[0].InnerText -ne $wanted[$name]) {
            return $false
        }
    }
    return @($xml.SelectNodes('//*[local-name()="BootTrigger"]')).Count -eq 1
}

function Register-SelfTest {
    $action = New-ScheduledTaskAction -Execute $PowerShell -Argument $Words
    # SetupComplete runs after this boot's startup triggers, hence the second one.
    $soon = New-ScheduledTaskTrigger -Once -At (Get-Date).AddMinutes(3)
    $triggers = @((New-ScheduledTaskTrigger -AtStartup), $soon)
    $principal = New-ScheduledTaskPrincipal -UserId $System -LogonType 'ServiceAccount' -RunLevel 'Highest'
    $options = @{
        ExecutionTimeLimit = New-TimeSpan -Minutes $LimitMinutes
        MultipleInstances = 'IgnoreNew'
        StartWhenAvailable = $true
        AllowStartIfOnBatteries = $true
        DontStopIfGoingOnBatteries = $true
    }
    $settings = New-ScheduledTaskSettingsSet @options
    $task = @{
        TaskPath = '\VegaImage\'
        TaskName = 'SelfTest'
        Description = 'Opens the inference service only when the card proves itself'
        Action = $action
        Trigger = $triggers
        Principal = $principal
        Settings = $settings
        Force = $true
    }
    $null = Register-ScheduledTask @task
}

function Invoke-All {
    # Close first: whatever fails afterwards leaves the machine out of service.
    if (-not $Settled) {
        Close-Everything
    }
    Set-FolderAccess -Path $Programs
    Set-FolderAccess -Path $State
    foreach ($name in @('selftest', 'selftest\facts', 'logs')) {
        Add-Folder -Path (Join-Path $State $name)
    }
    Register-Source
    Disable-FastStartup
    if (-not $Settled -or -not (Test-SelfTest)) {
        Invoke-Change -What 'task \VegaImage\SelfTest' -Do {
            Register-SelfTest
        }
    }
}

$code = 1
$fault = ''
try {
    Invoke-All
    $code = 0
}
catch {
    $fault = $_.Exception.Message
}
$said = [ordered]@{
    schema = 'vega-register/1'
    check = [bool]$Check
    changed = $script:Changes.Count -gt 0
    what = @($script:Changes)
    fault = $fault
}
Write-Output (ConvertTo-Json -InputObject $said -Compress)
exit $code

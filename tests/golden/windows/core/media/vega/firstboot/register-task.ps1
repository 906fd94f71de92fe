#Requires -Version 5.1
# Makes the folders, the event source and the task \VegaImage\SelfTest; puts the service out of
# service. May be run again: the result is the same. Starts nothing and restarts nothing.
[CmdletBinding()]
param(
    [string]$Programs = 'C:\Program Files\VegaImage',
    [string]$State = 'C:\ProgramData\VegaImage',
    [string]$Service = 'VegaInference',
    [string]$Rule = 'VegaInference-In',
    [int]$Port = 8080,
    [int]$LimitMinutes = 150
)

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

# By number: the names of these accounts differ by language.
$System = 'S-1-5-18'
$Administrators = 'S-1-5-32-544'
$Users = 'S-1-5-32-545'
$Power = 'HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager\Power'
$PowerShell = Join-Path $env:SystemRoot 'System32\WindowsPowerShell\v1.0\powershell.exe'

function Set-FolderAccess {
    # SYSTEM and Administrators write, users read, nothing is inherited from above.
    param([string]$Path)
    if (-not (Test-Path -LiteralPath $Path)) {
        $null = New-Item -ItemType 'Directory' -Path $Path -Force
    }
    $access = New-Object System.Security.AccessControl.DirectorySecurity
    $access.SetAccessRuleProtection($true, $false)
    $access.SetOwner((New-Object System.Security.Principal.SecurityIdentifier($Administrators)))
    $rights = @{ $System = 'FullControl'; $Administrators = 'FullControl'; $Users = 'ReadAndExecute' }
    foreach ($sid in $rights.Keys) {
        $account = New-Object System.Security.Principal.SecurityIdentifier($sid)
        $entry = New-Object System.Security.AccessControl.FileSystemAccessRule($account, $rights[$sid], 'ContainerInherit,ObjectInherit', 'None', 'Allow')
        $access.AddAccessRule($entry)
    }
    Set-Acl -LiteralPath $Path -AclObject $access
}

function Register-Source {
    if (-not [System.Diagnostics.EventLog]::SourceExists('VegaImage')) {
        New-EventLog -LogName 'Application' -Source 'VegaImage'
    }
}

function Close-Everything {
    $found = Get-Service -Name $Service -ErrorAction 'SilentlyContinue'
    if ($null -ne $found) {
        Set-Service -Name $Service -StartupType 'Disabled'
        Stop-Service -Name $Service -Force
    }
    $rules = @(Get-NetFirewallRule -DisplayName $Rule -ErrorAction 'SilentlyContinue')
    if ($rules.Count -eq 0) {
        $null = New-NetFirewallRule -Name $Rule -DisplayName $Rule -Direction 'Inbound' -Action 'Allow' -Protocol 'TCP' -LocalPort $Port -RemoteAddress 'LocalSubnet' -Enabled 'False'
    }
    foreach ($one in $rules) {
        Disable-NetFirewallRule -InputObject $one
    }
}

function Register-SelfTest {
    $script = Join-Path $Programs 'firstboot\self-test.ps1'
    $words = '-NoProfile -NonInteractive -ExecutionPolicy Bypass -File "{0}"' -f $script
    $action = New-ScheduledTaskAction -Execute $PowerShell -Argument $words
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

$code = 1
try {
    # Close first: whatever fails afterwards leaves the machine out of service.
    Close-Everything
    Set-FolderAccess -Path $Programs
    Set-FolderAccess -Path $State
    foreach ($name in @('selftest', 'selftest\facts', 'logs')) {
        $null = New-Item -ItemType 'Directory' -Path (Join-Path $State $name) -Force
    }
    Register-Source
    # With fast startup Windows wakes an old session, and no startup task would run.
    Set-ItemProperty -LiteralPath $Power -Name 'HiberbootEnabled' -Value 0 -Type 'DWord'
    Register-SelfTest
    Write-Output 'the task \VegaImage\SelfTest is registered'
    $code = 0
}
catch {
    Write-Warning $_.Exception.Message
}
exit $code

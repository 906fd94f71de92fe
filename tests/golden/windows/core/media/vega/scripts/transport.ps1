#Requires -Version 5.1
# OpenSSH from the office's own zip, whose SHA-256 the lock names; keys only. The same settings as
# the role transport of playbooks/. WinRM stays off. Host keys are made at the service's first
# start on each machine.
[CmdletBinding()]
param(
    [string]$Programs = 'C:\Program Files\VegaImage',
    [string]$Installers = 'C:\ProgramData\VegaImage\installers',
    [string]$Place = 'C:\Program Files\OpenSSH',
    [string]$Settings = 'C:\ProgramData\ssh'
)

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

. (Join-Path $PSScriptRoot 'tell.ps1')

$System = 'S-1-5-18'
$Administrators = 'S-1-5-32-544'
$Rule = 'VegaImage-OpenSSH'

function Get-Archive {
    $payload = Read-Json -Path (Join-Path $Programs 'payload.json')
    $entry = @($payload.files | Where-Object { $_.name -eq 'openssh' })
    if ($entry.Count -ne 1 -or $null -eq $entry[0].sha256) {
        throw 'payload.json names no digest of openssh: vega-image lock, then render anew'
    }
    $path = Join-Path $Installers $entry[0].file
    if (-not (Test-Path -LiteralPath $path)) {
        throw ($path + ' is not there')
    }
    $found = (Get-FileHash -LiteralPath $path -Algorithm 'SHA256').Hash.ToLowerInvariant()
    if ($found -cne $entry[0].sha256) {
        throw ('{0} is {1}, locked is {2}' -f $path, $found, $entry[0].sha256)
    }
    return $path
}

function Install-Server {
    param([string]$Archive)
    if (Test-Path -LiteralPath (Join-Path $Place 'sshd.exe')) {
        return
    }
    $unpacked = Join-Path $env:SystemRoot 'Temp\vega-openssh'
    if (Test-Path -LiteralPath $unpacked) {
        Remove-Item -LiteralPath $unpacked -Recurse -Force
    }
    Expand-Archive -LiteralPath $Archive -DestinationPath $unpacked
    $server = @(Get-ChildItem -LiteralPath $unpacked -Filter 'sshd.exe' -File -Recurse)
    if ($server.Count -ne 1) {
        throw ('{0} holds {1} files sshd.exe' -f $Archive, $server.Count)
    }
    Move-Item -LiteralPath $server[0].DirectoryName -Destination $Place
    if (Test-Path -LiteralPath $unpacked) {
        Remove-Item -LiteralPath $unpacked -Recurse -Force
    }
    $installer = @(Get-ChildItem -LiteralPath $Place -Filter 'install-sshd*' -File)
    if ($installer.Count -ne 1) {
        throw ('{0} holds {1} installers of the service' -f $Archive, $installer.Count)
    }
    Invoke-Script -Path $installer[0].FullName
}

function Set-Private {
    # OpenSSH refuses a key file that anybody else may write.
    param([string]$Path)
    $access = New-Object System.Security.AccessControl.FileSecurity
    $access.SetAccessRuleProtection($true, $false)
    $access.SetOwner((New-Object System.Security.Principal.SecurityIdentifier($Administrators)))
    foreach ($sid in @($System, $Administrators)) {
        $account = New-Object System.Security.Principal.SecurityIdentifier($sid)
        $entry = New-Object System.Security.AccessControl.FileSystemAccessRule($account, 'FullControl', 'Allow')
        $access.AddAccessRule($entry)
    }
    Set-Acl -LiteralPath $Path -AclObject $access
}

function Write-Setting {
    $lines = @(
        '# Written by transport.ps1 of vega-image.'
        'PubkeyAuthentication yes'
        'PasswordAuthentication no'
        'KbdInteractiveAuthentication no'
        'PermitEmptyPasswords no'
        'AllowTcpForwarding no'
        'AllowAgentForwarding no'
        'Subsystem sftp sftp-server.exe'
        'Match Group administrators'
        '       AuthorizedKeysFile __PROGRAMDATA__/ssh/administrators_authorized_keys'
    )
    $null = New-Item -ItemType 'Directory' -Path $Settings -Force
    Set-Content -LiteralPath (Join-Path $Settings 'sshd_config') -Value $lines -Encoding 'Ascii'
    $keys = Join-Path $Settings 'administrators_authorized_keys'
    Copy-Item -LiteralPath (Join-Path $Programs 'authorized_keys') -Destination $keys -Force
    Set-Private -Path $keys
}

function Open-Port {
    $rules = @(Get-NetFirewallRule -DisplayName $Rule -ErrorAction 'SilentlyContinue')
    if ($rules.Count -eq 0) {
        $null = New-NetFirewallRule -Name $Rule -DisplayName $Rule -Description 'Provisioning from the controller' -Direction 'Inbound' -Action 'Allow' -Protocol 'TCP' -LocalPort 22 -RemoteAddress 'LocalSubnet' -Enabled 'True'
    }
}

$code = 1
try {
    if (-not (Test-Path -LiteralPath (Join-Path $Programs 'authorized_keys'))) {
        throw 'the medium has no authorized_keys: nobody could ever log on'
    }
    Install-Server -Archive (Get-Archive)
    Write-Setting
    Set-Service -Name 'sshd' -StartupType 'Automatic'
    Set-Service -Name 'WinRM' -StartupType 'Disabled'
    Open-Port
    Write-Line 'transport: OpenSSH takes keys only, WinRM is off'
    $code = 0
}
catch {
    Write-Line ('VEGA-IMAGE FAILED transport: ' + $_.Exception.Message)
    $code = 4
}
exit $code

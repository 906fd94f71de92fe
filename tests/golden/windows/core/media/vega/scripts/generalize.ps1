#Requires -Version 5.1
# Last act of the build: takes away what is this machine's own, runs sysprep, waits until Windows
# says that the image is generalized, and switches off. If anything fails the machine stays on,
# so that Packer ends by its clock instead of shipping half an image.
[CmdletBinding()]
param(
    [string]$Programs = 'C:\Program Files\VegaImage',
    [int]$LimitMinutes = 30,
    [switch]$NoShutdown
)

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

. (Join-Path $PSScriptRoot 'tell.ps1')

$System32 = Join-Path $env:SystemRoot 'System32'
$StateKey = 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\Setup\State'

function Wait-ImageState {
    param([string]$Wanted)
    $until = [DateTime]::UtcNow.AddMinutes($LimitMinutes)
    while ((Get-Item -LiteralPath $StateKey).GetValue('ImageState', '') -ne $Wanted) {
        if ([DateTime]::UtcNow -gt $until) {
            throw ('the image is not {0} after {1} minutes' -f $Wanted, $LimitMinutes)
        }
        Start-Sleep -Seconds 5
    }
}

function Remove-Own {
    $left = @(
        'C:\ProgramData\ssh\ssh_host_*'
        'C:\Windows\Temp\packer-ps-env-vars-*.ps1'
        'C:\Windows\Temp\script-*.ps1'
        'C:\ProgramData\VegaImage\selftest\*'
        'C:\Windows\System32\Sysprep\unattend.xml'
        'C:\Windows\Panther\unattend.xml'
    )
    foreach ($pattern in $left) {
        if (Test-Path -Path $pattern) {
            Remove-Item -Path $pattern -Recurse -Force
        }
    }
    $null = New-Item -ItemType 'Directory' -Path 'C:\ProgramData\VegaImage\selftest\facts' -Force
}

function Remove-UserPackage {
    # Sysprep refuses a package that one account has and the image has not: Edge updates itself.
    foreach ($package in @(Get-AppxPackage -AllUsers | Where-Object { $_.Name -like 'Microsoft.MicrosoftEdge*' })) {
        Remove-AppxPackage -AllUsers -Package $package.PackageFullName
    }
}

function Invoke-Sysprep {
    $answer = Join-Path $Programs 'answer\unattend-oobe.xml'
    if (-not (Test-Path -LiteralPath $answer)) {
        throw ($answer + ' is not there')
    }
    $words = @('/generalize', '/oobe', '/quit', '/quiet', ('/unattend:"{0}"' -f $answer))
    $process = Start-Process -FilePath (Join-Path $System32 'Sysprep\sysprep.exe') -ArgumentList $words -PassThru -Wait
    # It ends with 0 also where it failed: the state alone tells.
    Write-Line ('generalize: sysprep ended with ' + $process.ExitCode)
}

$code = 1
try {
    Wait-ImageState -Wanted 'IMAGE_STATE_COMPLETE'
    Remove-UserPackage
    # Ansible speaks PowerShell to the machines; Packer, until now, spoke to cmd.
    Set-Registry -Path 'HKLM:\SOFTWARE\OpenSSH' -Name 'DefaultShell' -Value (Join-Path $System32 'WindowsPowerShell\v1.0\powershell.exe') -Type 'String'
    Remove-Own
    Invoke-Sysprep
    Wait-ImageState -Wanted 'IMAGE_STATE_GENERALIZE_RESEAL_TO_OOBE'
    Write-Line 'generalize: done'
    if (-not $NoShutdown) {
        Invoke-Program -FilePath (Join-Path $System32 'shutdown.exe') -Arguments @('/s', '/t', '5', '/f', '/d', 'p:2:4')
    }
    $code = 0
}
catch {
    Write-Line ('VEGA-IMAGE FAILED generalize: ' + $_.Exception.Message)
}
exit $code

#Requires -Version 5.1
# Makes drive B:, the short root that keeps the paths of a native build under the limits: the
# partition labelled VEGABUILD, or a folder of C:. May be run again.
[CmdletBinding()]
param(
    [string]$Label = 'VEGABUILD',
    [string]$Folder = 'C:\VegaBuild'
)

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

. (Join-Path $PSScriptRoot 'tell.ps1')

$Devices = 'HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager\DOS Devices'

function Set-BuildVolume {
    $found = @(Get-CimInstance -ClassName 'Win32_Volume' | Where-Object { $_.Label -eq $Label })
    if ($found.Count -eq 0) {
        return $false
    }
    Set-CimInstance -InputObject $found[0] -Property @{ DriveLetter = 'B:' }
    return $true
}

function Set-BuildFolder {
    $null = New-Item -ItemType 'Directory' -Path $Folder -Force
    # Session Manager makes this at every start, for every session.
    Set-Registry -Path $Devices -Name 'B:' -Value ('\??\' + $Folder) -Type 'String'
    # Until the next start: what SYSTEM substitutes, all sessions see.
    Invoke-Program -FilePath (Join-Path $env:SystemRoot 'System32\subst.exe') -Arguments @('B:', $Folder)
}

$code = 1
try {
    if (Test-Path -LiteralPath 'B:\') {
        Write-Line 'build root: B: is there already'
    }
    elseif (Set-BuildVolume) {
        Write-Line ('build root: B: is the partition ' + $Label)
    }
    else {
        Set-BuildFolder
        Write-Line ('build root: B: is ' + $Folder)
    }
    foreach ($name in @('stamps', 'logs', 'src', 'build', 'artifacts')) {
        $null = New-Item -ItemType 'Directory' -Path (Join-Path 'B:\' $name) -Force
    }
    $code = 0
}
catch {
    Write-Line ('VEGA-IMAGE FAILED build-root: ' + $_.Exception.Message)
}
exit $code

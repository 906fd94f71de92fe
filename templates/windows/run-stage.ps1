# Runs one stage of the native build, or finds that nothing is left to do. A task of SYSTEM starts
# it; Ansible polls that task and then demands the stamp, which is written last of all. A run that
# was killed leaves no stamp, and the next one goes on where the build stood.
# Exit: 0 done, 2 bad input, 4 other bytes or none, 5 a tool or the disk, 6 the build failed,
# 7 the card does not enumerate.
#Requires -Version 5.1
[CmdletBinding()]
param(
    [string]$Stage = ''
)

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

. (Join-Path $PSScriptRoot 'steps.ps1')

$Root = 'B:\'
$Behind = 'C:\VegaBuild'
$Log = ''
$PowerShell = Join-Path $System32 'WindowsPowerShell\v1.0\powershell.exe'
$FileSystem = 'HKLM:\SYSTEM\CurrentControlSet\Control\FileSystem'
$Codes = @(0, 2, 4, 5, 6, 7)

function Write-StageLog {
    param([string]$Text)
    Write-Log $Text
    if ($script:Log -ne '') {
        $line = [DateTime]::UtcNow.ToString('yyyy-MM-ddTHH:mm:ssZ') + ' ' + $Text
        Add-Content -LiteralPath $script:Log -Value $line -Encoding 'UTF8'
    }
}

function Initialize-Root {
    # A drive made by SYSTEM is seen by all, and gone at the next start of Windows: hence each run.
    if (-not (Test-Path -LiteralPath $Root)) {
        New-Folder -Path $Behind
        & (Join-Path $System32 'subst.exe') 'B:' $Behind | Out-Host
        if ($LASTEXITCODE -ne 0) {
            Stop-Stage -Code 5 -Text ('subst could not make drive B: from {0}' -f $Behind)
        }
    }
    foreach ($name in @('stamps', 'logs', 'src', 'build', 'artifacts')) {
        New-Folder -Path (Join-Path $Root $name)
    }
}

function Set-LongPath {
    $value = (Get-Item -LiteralPath $FileSystem).GetValue('LongPathsEnabled', 0)
    if ($value -ne 1) {
        Set-ItemProperty -LiteralPath $FileSystem -Name 'LongPathsEnabled' -Value 1 -Type 'DWord'
        Write-StageLog 'LongPathsEnabled set to 1'
    }
}

function Find-Folder {
    param([string]$Name)
    $found = @(Get-ChildItem -LiteralPath $PSScriptRoot -Directory | Where-Object { $_.Name -match ('^[0-9]{2}-' + $Name + '$') })
    if ($found.Count -ne 1) {
        Stop-Stage -Code 2 -Text ('{0} has {1} folders of stage {2}' -f $PSScriptRoot, $found.Count, $Name)
    }
    return $found[0].FullName
}

function Read-Manifest {
    param([string]$Name)
    $manifest = Read-Json -Path (Join-Path (Find-Folder -Name $Name) 'stage.json')
    if ($manifest.schema -ne 1 -or $manifest.stage -cne $Name) {
        Stop-Stage -Code 2 -Text ('stage.json of {0} is of another schema or stage' -f $Name)
    }
    return $manifest
}

function Get-StampPath {
    param([string]$Name)
    return (Join-Path $Root ('stamps\' + $Name + '.json'))
}

function Test-Stamp {
    # Whether the stage was done with today's inputs, and its outputs are still there.
    param($Manifest)
    $path = Get-StampPath -Name $Manifest.stage
    if (-not (Test-Path -LiteralPath $path)) {
        return $false
    }
    try {
        $stamp = Get-Content -LiteralPath $path -Raw -Encoding 'UTF8' | ConvertFrom-Json
        if ($stamp.schema -ne 1 -or $stamp.stage -cne $Manifest.stage -or $stamp.inputs -cne $Manifest.inputs) {
            return $false
        }
        foreach ($output in @($stamp.outputs)) {
            if (-not (Test-Path -LiteralPath $output.path -PathType 'Leaf')) {
                return $false
            }
            if ((Get-Item -LiteralPath $output.path).Length -ne $output.size) {
                return $false
            }
        }
    }
    catch {
        Write-StageLog ('{0} is no stamp: {1}' -f $path, $_.Exception.Message)
        return $false
    }
    return $true
}

function Assert-Need {
    param($Manifest)
    foreach ($name in @($Manifest.needs)) {
        if (-not (Test-Stamp -Manifest (Read-Manifest -Name $name))) {
            Stop-Stage -Code 2 -Text ('stage {0} is not done with its present inputs: run it first' -f $name)
        }
    }
}

function Assert-Disk {
    # A run that goes on already holds its space: its own mark says so.
    param($Manifest)
    $mark = Join-Path $Root ('stamps\' + $Manifest.stage + '.begun')
    $least = [double]$Manifest.disk_gib
    if (Test-Path -LiteralPath $mark) {
        if ((Get-Content -LiteralPath $mark -Raw).Trim() -ceq $Manifest.inputs) {
            $least = [Math]::Min($least, 20)
        }
    }
    $free = (New-Object System.IO.DriveInfo('B')).AvailableFreeSpace / [Math]::Pow(1024, 3)
    if ($free -lt $least) {
        Stop-Stage -Code 5 -Text ('drive B: has {0:N0} GiB free, stage {1} wants {2:N0}' -f $free, $Manifest.stage, $least)
    }
    Write-Whole -Path $mark -Text ($Manifest.inputs + "`n")
}

function Invoke-Stage {
    # By cmd.exe: what programs write to stderr reaches the log and is no error of PowerShell.
    param([string]$Folder)
    $script = Join-Path $Folder 'stage.ps1'
    $line = '/d /s /c "chcp 65001 >NUL & "{0}" -NoProfile -NonInteractive -ExecutionPolicy Bypass -File "{1}" >> "{2}" 2>&1"' -f $PowerShell, $script, $script:Log
    $start = @{
        FilePath = Join-Path $System32 'cmd.exe'
        ArgumentList = $line
        WorkingDirectory = $Root
        NoNewWindow = $true
        PassThru = $true
    }
    $process = Start-Process @start
    # Without a look at the handle .NET forgets the exit code.
    $null = $process.Handle
    $process.WaitForExit()
    $code = $process.ExitCode
    if ($Codes -notcontains $code) {
        Stop-Stage -Code 6 -Text ('stage.ps1 ended with {0}' -f $code)
    }
    if ($code -ne 0) {
        Stop-Stage -Code $code -Text ('stage.ps1 ended with {0}; the reason stands above' -f $code)
    }
}

function Get-Output {
    # Every file that the stage promised; each pattern must name one that is not empty.
    param($Manifest)
    foreach ($pattern in @($Manifest.outputs)) {
        $folder = Split-Path -Parent $pattern
        $files = @()
        if (Test-Path -LiteralPath $folder) {
            $files = @(Get-ChildItem -LiteralPath $folder -Filter (Split-Path -Leaf $pattern) -File | Sort-Object -Property 'Name')
        }
        if ($files.Count -eq 0) {
            Stop-Stage -Code 6 -Text ('stage {0} left no {1}' -f $Manifest.stage, $pattern)
        }
        foreach ($file in $files) {
            if ($file.Length -eq 0) {
                Stop-Stage -Code 6 -Text ('{0} is empty' -f $file.FullName)
            }
            [ordered]@{ path = $file.FullName; sha256 = (Get-Digest -Path $file.FullName); size = $file.Length }
        }
    }
}

function Write-Stamp {
    param($Manifest, $Outputs)
    $stamp = [ordered]@{
        schema = 1
        stage = $Manifest.stage
        inputs = $Manifest.inputs
        finished = [DateTime]::UtcNow.ToString('yyyy-MM-ddTHH:mm:ssZ')
        outputs = @($Outputs)
    }
    Write-Json -Path (Get-StampPath -Name $Manifest.stage) -Value $stamp
}

function Lock-Root {
    # One stage at a time. The lock is the open file, so a killed run holds nothing.
    try {
        return [System.IO.File]::Open((Join-Path $Root 'stamps\lock'), 'OpenOrCreate', 'ReadWrite', 'None')
    }
    catch [System.IO.IOException] {
        Stop-Stage -Code 5 -Text 'another stage is running'
    }
}

function Start-Stage {
    $folder = Find-Folder -Name $Stage
    $manifest = Read-Manifest -Name $Stage
    $script:Log = Join-Path $Root ('logs\' + $Stage + '.log')
    Write-StageLog ('stage {0}, inputs {1}' -f $Stage, $manifest.inputs)
    Set-LongPath
    Assert-Need -Manifest $manifest
    if (Test-Stamp -Manifest $manifest) {
        Write-StageLog 'done before with the same inputs'
        return
    }
    $old = Get-StampPath -Name $Stage
    if (Test-Path -LiteralPath $old) {
        # From here on the stage is not done, whatever becomes of this run.
        Remove-Item -LiteralPath $old -Force
    }
    Assert-Disk -Manifest $manifest
    Invoke-Stage -Folder $folder
    Write-Stamp -Manifest $manifest -Outputs @(Get-Output -Manifest $manifest)
    Write-StageLog ('stage {0} is done' -f $Stage)
}

$held = $null
try {
    if ($Stage -notmatch '^[a-z][a-z-]{0,40}$') {
        Stop-Stage -Code 2 -Text '-Stage NAME: a stage of this folder is wanted'
    }
    Initialize-Root
    $held = Lock-Root
    Start-Stage
    $script:ExitCode = 0
}
catch {
    Write-StageLog ('stage {0}: {1}' -f $Stage, $_.Exception.Message)
    if ($script:ExitCode -eq 1) {
        Write-StageLog $_.ScriptStackTrace
    }
}
finally {
    if ($null -ne $held) {
        $held.Dispose()
    }
}
exit $script:ExitCode

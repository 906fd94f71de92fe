#Requires -Version 5.1
# The body of the task \VegaImage\SelfTest: hold, gather, ask the gate, run if need be, act.
[CmdletBinding()]
param(
    [string]$Programs = 'C:\Program Files\VegaImage',
    [string]$State = 'C:\ProgramData\VegaImage',
    [string]$Level = 'r2',
    [int]$LimitMinutes = 100
)

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

$Python = Join-Path $Programs 'python\python.exe'
$Program = Join-Path $Programs 'vega-selftest.pyz'
$FirstBoot = Join-Path $Programs 'firstboot'
$Folder = Join-Path $State 'selftest'
$Facts = Join-Path $Folder 'facts'
$Record = Join-Path $Folder 'state.json'
$ReportFolder = Join-Path $Folder 'run'
$Verdict = Join-Path $Folder 'verdict.json'
$Log = Join-Path $State 'logs\self-test.log'
$PowerShell = Join-Path $env:SystemRoot 'System32\WindowsPowerShell\v1.0\powershell.exe'

function Write-Log {
    param([string]$Text)
    $line = [DateTime]::UtcNow.ToString('yyyy-MM-ddTHH:mm:ssZ') + ' ' + $Text
    Add-Content -LiteralPath $Log -Value $line -Encoding 'UTF8'
    Write-Verbose $line
}

function Start-Limited {
    # Runs a program with a time limit; returns its exit code, or $null if it was killed.
    param([string]$FilePath, [string]$Arguments, [string]$Output, [int]$Minutes)
    $start = @{
        FilePath = $FilePath
        ArgumentList = $Arguments
        WorkingDirectory = $Folder
        RedirectStandardOutput = $Output
        RedirectStandardError = $Output + '.err'
        NoNewWindow = $true
        PassThru = $true
    }
    $process = Start-Process @start
    # Without a look at the handle .NET forgets the exit code.
    $null = $process.Handle
    if ($process.WaitForExit($Minutes * 60000)) {
        return $process.ExitCode
    }
    & (Join-Path $env:SystemRoot 'System32\taskkill.exe') '/T' '/F' '/PID' ([string]$process.Id) | Out-Null
    if ($LASTEXITCODE -ne 0) {
        Write-Warning ('taskkill ended with ' + $LASTEXITCODE)
    }
    return $null
}

function Invoke-Script {
    param([string]$Name, [string]$Arguments)
    $file = Join-Path $FirstBoot $Name
    $words = '-NoProfile -NonInteractive -ExecutionPolicy Bypass -File "{0}" {1}' -f $file, $Arguments
    return Start-Limited -FilePath $PowerShell -Arguments $words -Output (Join-Path $State ('logs\' + $Name + '.log')) -Minutes 10
}

function Invoke-Hold {
    param([string]$Why)
    $code = Invoke-Script -Name 'apply-verdict.ps1' -Arguments ('-Hold -Why "{0}"' -f ($Why -replace '[\s"\\]+', ' '))
    if ($code -ne 0) {
        throw 'the service could not be held out of service; see logs\apply-verdict.ps1.log'
    }
}

function Invoke-Gather {
    $code = Invoke-Script -Name 'gather-facts.ps1' -Arguments ('-Facts "{0}"' -f $Facts)
    if ($code -ne 0) {
        # The gate names the file that is missing.
        Write-Log ('gather-facts.ps1 ended with ' + $code)
    }
}

function Invoke-Gate {
    # Asks the gate; its answer lies in verdict.json afterwards, or nothing does.
    param([string]$Words)
    if (Test-Path -LiteralPath $Verdict) {
        Remove-Item -LiteralPath $Verdict -Force
    }
    $line = '-I "{0}" gate --facts "{1}" --state "{2}" --level {3} --json {4}' -f $Program, $Facts, $Record, $Level, $Words
    $code = Start-Limited -FilePath $Python -Arguments $line -Output $Verdict -Minutes 10
    $value = Get-Content -LiteralPath $Verdict -Raw -Encoding 'UTF8' | ConvertFrom-Json
    if ($value.schema -cne 'vega-gate-verdict/1' -or $value.exit -ne $code) {
        throw ('the gate gave no verdict, exit ' + $code)
    }
    Write-Log ('gate {0}: {1} {2}' -f $Words, $value.state, $value.code)
    return $value
}

function Invoke-Suite {
    param([string]$Device)
    if (Test-Path -LiteralPath $ReportFolder) {
        Remove-Item -LiteralPath $ReportFolder -Recurse -Force
    }
    $words = '-I "{0}" run --level {1} --device {2} --facts "{3}" --report "{4}"' -f $Program, $Level, $Device, $Facts, $ReportFolder
    $code = Start-Limited -FilePath $Python -Arguments $words -Output (Join-Path $State 'logs\run.log') -Minutes $LimitMinutes
    # What was proven stands in the report; an exit code could be anybody's.
    Write-Log ('the run ended with ' + $code)
}

function Invoke-Apply {
    $code = Invoke-Script -Name 'apply-verdict.ps1' -Arguments ('-Verdict "{0}"' -f $Verdict)
    if ($code -ne 0) {
        throw 'the verdict could not be applied; see logs\apply-verdict.ps1.log'
    }
}

function Invoke-SelfTest {
    Invoke-Hold -Why 'the self-test has not ended'
    Invoke-Gather
    $value = Invoke-Gate -Words ''
    if ($value.state -cne 'pass') {
        $value = Invoke-Gate -Words '--begin'
        if ($value.state -ceq 'running') {
            Invoke-Suite -Device $value.device
            Invoke-Gather
            $report = Join-Path $ReportFolder 'report.json'
            $value = Invoke-Gate -Words ('--finish --report "{0}"' -f $report)
        }
    }
    Invoke-Apply
}

$mutex = New-Object System.Threading.Mutex($false, 'Global\VegaImageSelfTest')
try {
    $mine = $mutex.WaitOne(0)
}
catch [System.Threading.AbandonedMutexException] {
    # Whoever held it was killed: it is ours now.
    $mine = $true
}
if (-not $mine) {
    Write-Warning 'another self-test is running'
    exit 9
}
$code = 1
try {
    Invoke-SelfTest
    $code = 0
}
catch {
    $fault = $_.Exception.Message
    try {
        Write-Log $fault
    }
    finally {
        Invoke-Hold -Why $fault
    }
}
finally {
    $mutex.ReleaseMutex()
    $mutex.Dispose()
}
exit $code

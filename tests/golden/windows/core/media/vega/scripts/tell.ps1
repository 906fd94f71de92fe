#Requires -Version 5.1
# For the other scripts of this folder: a line that can be followed from outside (output, log,
# and COM1 where there is one), and programs whose exit code is looked at.
Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

$TellFolder = 'C:\ProgramData\VegaImage\logs'

function Write-Line {
    param([string]$Text)
    $line = [DateTime]::UtcNow.ToString('yyyy-MM-ddTHH:mm:ssZ') + ' ' + $Text
    Write-Host $line
    if (Test-Path -LiteralPath $TellFolder) {
        Add-Content -LiteralPath (Join-Path $TellFolder 'setup.log') -Value $line -Encoding 'UTF8'
    }
    if ([System.IO.Ports.SerialPort]::GetPortNames() -notcontains 'COM1') {
        return
    }
    $port = New-Object System.IO.Ports.SerialPort('COM1', 115200)
    try {
        $port.WriteTimeout = 2000
        $port.Open()
        $port.Write($line + "`r`n")
    }
    catch {
        # Nobody listens, or another script is writing: the log has the line.
        Write-Verbose $_.Exception.Message
    }
    finally {
        $port.Dispose()
    }
}

function Invoke-Program {
    param([string]$FilePath, [array]$Arguments, [array]$Good = @(0))
    & $FilePath @Arguments | Out-Host
    if ($Good -notcontains $LASTEXITCODE) {
        throw ('{0} ended with {1}' -f $FilePath, $LASTEXITCODE)
    }
}

function Invoke-Script {
    param([string]$Path, [array]$Arguments = @())
    $shell = Join-Path $env:SystemRoot 'System32\WindowsPowerShell\v1.0\powershell.exe'
    $words = @('-NoProfile', '-NonInteractive', '-ExecutionPolicy', 'Bypass', '-File', $Path)
    Invoke-Program -FilePath $shell -Arguments ($words + $Arguments)
}

function Read-Json {
    param([string]$Path)
    return Get-Content -LiteralPath $Path -Raw -Encoding 'UTF8' | ConvertFrom-Json
}

function Set-Registry {
    param([string]$Path, [string]$Name, [object]$Value, [string]$Type = 'DWord')
    if (-not (Test-Path -LiteralPath $Path)) {
        $null = New-Item -Path $Path -Force
    }
    Set-ItemProperty -LiteralPath $Path -Name $Name -Value $Value -Type $Type
}

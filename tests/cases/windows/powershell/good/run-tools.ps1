# Uses what scripts may use; every line of it was once refused by mistake, or could be.
#Requires -Version 5.1
[CmdletBinding()]
param(
    [Parameter(Mandatory = $true)]
    [string]$Name,
    [string]$Password = '',
    [string]$PasswordFile = 'C:\ProgramData\VegaImage\login.txt',
    [switch]$Quiet
)

Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'

$Git = Join-Path $env:ProgramFiles 'Git\cmd\git.exe'
$publicKeyToken = '31bf3856ad364e35'

function Invoke-Native {
    # Programs write progress to stderr: that alone must not stop the script.
    param([string]$Program, [string[]]$Words)
    $ErrorActionPreference = 'Continue'
    & $Program @Words 2>&1 | Out-Host
    if ($LASTEXITCODE -ne 0) {
        throw ('{0} ended with {1}' -f $Program, $LASTEXITCODE)
    }
}

function Invoke-Block {
    param([scriptblock]$Do)
    & $Do
    if ($LASTEXITCODE -ne 0) {
        throw 'a program failed'
    }
}

function Get-Version {
    $said = & $Git @('--version')
    if ($LASTEXITCODE -ne 0) {
        return $null
    }
    return $said
}

function Start-Installer {
    param([string]$File)
    $process = Start-Process -FilePath $File -ArgumentList @('/quiet', '/norestart') -Wait -PassThru
    if ($process.ExitCode -ne 0 -and $process.ExitCode -ne 3010) {
        throw ('{0} ended with {1}' -f $File, $process.ExitCode)
    }
}

function Get-Checked {
    param([string]$Uri, [string]$File, [string]$Digest)
    Invoke-WebRequest -Uri $Uri -OutFile $File -UseBasicParsing
    if ((Get-FileHash -LiteralPath $File -Algorithm 'SHA256').Hash -ne $Digest) {
        throw ('{0} has another digest' -f $File)
    }
}

$read = { Get-Item -LiteralPath $Name }
& $read
Invoke-Native -Program $Git -Words @('-c', 'core.longpaths=true', 'status')
Invoke-Block -Do { cmake '--version' }
Push-Location -LiteralPath $Name
try {
    & $Git 'fetch' '--depth=1'
}
finally {
    Pop-Location
}
if ($LASTEXITCODE -ne 0) {
    exit 6
}
$count = @(& $Git 'ls-files')
if ($LASTEXITCODE -ne 0) {
    exit 6
}
$minutes = 3
switch ($Name) {
    'a' {
        $minutes = 5
    }
    default {
        $minutes = 7
    }
}
$text = @'
A here-string may say cmd && other || more ?? and a ? b : c, and rm too.
'@
$size = 1024 * 1024 * $minutes
$secure = ConvertTo-SecureString -String $Password -AsPlainText -Force
Remove-ItemProperty -LiteralPath 'HKLM:\SOFTWARE\VegaImage' -Name 'DefaultPassword'
$words = '-NoProfile -NonInteractive -ExecutionPolicy Bypass -File "{0}"' -f (Join-Path $Name 'x.ps1')
try {
    . 'C:\Program Files\VegaImage\scripts\names.ps1'
}
catch [System.Management.Automation.CommandNotFoundException] {
    Write-Warning $_.Exception.Message
}
Write-Output ('{0} {1} {2} {3} {4} {5}' -f $count.Count, $size, $text, $secure, $words, $PasswordFile)
& $Git 'gc' | Out-Null
exit $LASTEXITCODE

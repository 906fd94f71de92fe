#Requires -Version 5.1
# For bare machines: makes a WIM of a generalized Windows that does not run (a mounted VHDX, or a
# disk seen from Windows PE), and its SHA-256 beside it. Run it as an administrator.
[CmdletBinding()]
param(
    [Parameter(Mandatory = $true)]
    [string]$Windows,
    [Parameter(Mandatory = $true)]
    [string]$Image
)

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

. (Join-Path $PSScriptRoot 'tell.ps1')

$Dism = Join-Path $env:SystemRoot 'System32\dism.exe'

function Test-Generalized {
    # The image's own registry says whether sysprep has sealed it. A copy: the disk may be mounted
    # for reading only.
    $hive = Join-Path $env:TEMP 'vega-capture-software'
    Copy-Item -LiteralPath (Join-Path $Windows 'Windows\System32\config\SOFTWARE') -Destination $hive -Force
    $reg = Join-Path $env:SystemRoot 'System32\reg.exe'
    Invoke-Program -FilePath $reg -Arguments @('load', 'HKLM\VegaCapture', $hive)
    try {
        $key = Get-Item -LiteralPath 'HKLM:\VegaCapture\Microsoft\Windows\CurrentVersion\Setup\State'
        $state = $key.GetValue('ImageState', '')
        $key.Dispose()
    }
    finally {
        # An open handle would keep the hive loaded.
        [GC]::Collect()
        [GC]::WaitForPendingFinalizers()
        Invoke-Program -FilePath $reg -Arguments @('unload', 'HKLM\VegaCapture')
        Remove-Item -LiteralPath $hive -Force
    }
    return $state -eq 'IMAGE_STATE_GENERALIZE_RESEAL_TO_OOBE'
}

$code = 1
try {
    if (Test-Path -LiteralPath $Image) {
        throw ($Image + ' exists already')
    }
    if (-not (Test-Generalized)) {
        throw ('the Windows in {0} is not generalized' -f $Windows)
    }
    $words = @('/Capture-Image', ('/ImageFile:' + $Image), ('/CaptureDir:' + $Windows), '/Name:vega-image', '/Compress:max', '/CheckIntegrity', '/Verify')
    Invoke-Program -FilePath $Dism -Arguments $words
    $digest = (Get-FileHash -LiteralPath $Image -Algorithm 'SHA256').Hash.ToLowerInvariant()
    $line = '{0}  {1}' -f $digest, (Split-Path -Leaf $Image)
    Set-Content -LiteralPath ($Image + '.sha256') -Value $line -Encoding 'Ascii'
    Write-Line ('capture: ' + $line)
    $code = 0
}
catch {
    Write-Line ('VEGA-IMAGE FAILED capture: ' + $_.Exception.Message)
}
exit $code

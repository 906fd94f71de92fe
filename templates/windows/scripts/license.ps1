#Requires -Version 5.1
# Installs the product key that the environment holds, and nothing where it holds none. Calls what
# slmgr.vbs calls, because a command line can be read by others. The key is never written.
[CmdletBinding()]
param()

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

. (Join-Path $PSScriptRoot 'tell.ps1')

$code = 1
try {
    if ([string]::IsNullOrWhiteSpace($env:VEGA_PRODUCT_KEY)) {
        Write-Line 'license: no key given'
    }
    else {
        $service = Get-CimInstance -ClassName 'SoftwareLicensingService'
        $words = @{ ProductKey = $env:VEGA_PRODUCT_KEY.Trim() }
        $result = Invoke-CimMethod -InputObject $service -MethodName 'InstallProductKey' -Arguments $words
        if ($result.ReturnValue -ne 0) {
            throw ('InstallProductKey ended with ' + $result.ReturnValue)
        }
        $null = Invoke-CimMethod -InputObject $service -MethodName 'RefreshLicenseStatus'
        Write-Line 'license: the key is installed'
    }
    $code = 0
}
catch {
    Write-Line ('VEGA-IMAGE FAILED license: ' + $_.Exception.Message)
}
exit $code

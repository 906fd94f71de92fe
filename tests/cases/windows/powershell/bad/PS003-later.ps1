#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

function Get-Lax {
    $ErrorActionPreference = 'Continue'
    $script:ErrorActionPreference = 'Continue' # refuse: PS003
}
$ErrorActionPreference = 'SilentlyContinue' # refuse: PS003

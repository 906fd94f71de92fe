#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

try {
    Get-Item -LiteralPath 'C:\x'
}
catch { } # refuse: PS008
try {
    Get-Item -LiteralPath 'C:\x'
}
catch [System.IO.IOException] { # refuse: PS008
    # a reason changes nothing
}

#Requires -Version 5.1
# The function stands in the other script and looks at the exit code there.
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

Invoke-Block -Do { ninja '-C' 'B:\build' }
Start-Installer -File 'C:\x.exe'

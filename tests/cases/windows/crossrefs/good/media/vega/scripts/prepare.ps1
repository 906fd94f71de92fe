#Requires -Version 5.1
# Copies the payload; called by the answer file.

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

$Drive = (Get-Volume -FileSystemLabel 'VEGA').DriveLetter + ':'
$Programs = Join-Path $env:ProgramFiles 'VegaImage'
foreach ($name in @('firstboot', 'stages', 'patches', 'scripts')) {
    Copy-Item -LiteralPath (Join-Path $Drive ('vega\' + $name)) -Destination $Programs -Recurse -Force
}
Copy-Item -LiteralPath "$Drive\vega\image.json" -Destination $Programs -Force
Copy-Item -LiteralPath "$Drive\vega\authorized_keys" -Destination $Programs -Force
Copy-Item -LiteralPath "$Drive\vega\installers\openssh.zip" -Destination $Programs -Force
Copy-Item -LiteralPath "$Drive\vega\vega-selftest.pyz" -Destination $Programs -Force
& "$Drive\vega\scripts\generalize.ps1"
if ($LASTEXITCODE -ne 0) {
    exit 6
}

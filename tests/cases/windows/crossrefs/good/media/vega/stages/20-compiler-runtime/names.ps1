#Requires -Version 5.1
# Names.

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

$Names = @('a')
$null = $Names

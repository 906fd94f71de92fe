# no word of a version # refuse: PS010
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

if ($args.Count) {
	$x = 1 # refuse: PS016
}

#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

$a = $args[0] ?? 'x' # refuse: PS009 refuse: PS001
$b = $a ? 'y' : 'n' # refuse: PS009 refuse: PS001

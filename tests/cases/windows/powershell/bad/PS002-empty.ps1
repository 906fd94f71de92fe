#Requires -Version 5.1
$ErrorActionPreference = 'Stop'
# nothing follows # refuse-next: PS002

#Requires -Version 5.1
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

gci 'C:\' | % { $_.Name } # refuse: PS011
rm 'C:\x' # refuse: PS011
sc 'C:\x' 'text' # refuse: PS011
cd 'C:\' # refuse: PS011

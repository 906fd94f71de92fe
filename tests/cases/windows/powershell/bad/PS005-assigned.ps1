#Requires -Version 5.1
param(
    [string]$Password = 'hunter2' # refuse: PS005
)
Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'
$script:ApiKey = "abc" # refuse: PS005
$env:VEGA_TOKEN = 'abc' # refuse: PS005
$options = @{ Name = 'x'; Password = 'abc' } # refuse: PS005
$options.Password = 'abc' # refuse: PS005
$options['Passphrase'] = 'abc' # refuse: PS005

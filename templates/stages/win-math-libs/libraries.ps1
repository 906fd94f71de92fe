# What the result of math-libs must and must not hold; the table is exclusions.json beside this.
#Requires -Version 5.1

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

$Exclusions = Read-Json -Path (Join-Path $PSScriptRoot 'exclusions.json')

function Assert-Excluded {
    # A library without code for this card loads happily and fails later, or computes nothing.
    param([string]$Folder)
    foreach ($row in (@($Exclusions.on_gfx906) + @($Exclusions.on_windows))) {
        foreach ($pattern in @($row.absent)) {
            $found = @(Get-ChildItem -LiteralPath $Folder -Recurse -Filter $pattern -File)
            if ($found.Count -gt 0) {
                Stop-Stage -Code 6 -Text ('{0}: {1} is excluded here and must not be' -f $found[0].FullName, $row.project)
            }
        }
    }
    foreach ($row in @($Exclusions.placeholder)) {
        Write-Log ('{0}: {1} ({2})' -f $row.project, $row.why, $row.issue)
    }
}

function Assert-MIOpen {
    # As it was configured, not as it was asked for.
    param([string]$Folder)
    $caches = @(Get-ChildItem -LiteralPath $Folder -Recurse -Depth 2 -Filter 'CMakeCache.txt' -File | Where-Object { $_.FullName -match '\\MIOpen\\' })
    if ($caches.Count -ne 1) {
        Stop-Stage -Code 6 -Text ('{0}: one CMakeCache.txt of MIOpen is wanted, {1} are there' -f $Folder, $caches.Count)
    }
    $text = Get-Content -LiteralPath $caches[0].FullName -Raw
    foreach ($wanted in $Exclusions.miopen.PSObject.Properties) {
        $found = 'nothing'
        if ($text -match ('(?m)^' + $wanted.Name + ':[A-Z]+=([^\r\n]*)')) {
            $found = $Matches[1]
        }
        if ($found -cne $wanted.Value) {
            Stop-Stage -Code 6 -Text ('MIOpen was configured with {0}={1}; {2} is wanted' -f $wanted.Name, $found, $wanted.Value)
        }
    }
}

function Install-Library {
    # Over the runtime, which stays what the card enumerated with.
    param([string]$From)
    Assert-Excluded -Folder (Join-Path $From 'bin')
    foreach ($file in @(Get-ChildItem -LiteralPath (Join-Path $From 'bin') -Filter 'amdhip64*.dll' -File)) {
        $here = Join-Path $Rocm ('bin\' + $file.Name)
        if (-not (Test-Path -LiteralPath $here) -or (Get-Digest -Path $here) -cne (Get-Digest -Path $file.FullName)) {
            Stop-Stage -Code 6 -Text ('{0} is another runtime than the card enumerated with' -f $file.FullName)
        }
    }
    Copy-Tree -From $From -To $Rocm
}

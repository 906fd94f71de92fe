# How the HIP runtime is to find a card that its Windows back end (PAL) no longer lists:
#   pal-patch  gives the table its row back; edits of ours, by their SHA-256 in stage.json
#   rocr       GPU_ENABLE_PAL=0: the other back end, over WDDM
#   old-clr    a runtime from before the row was taken out, with the libraries of that day
# None was ever proven on this card. The next stage asks the card, not the compiler.
#Requires -Version 5.1

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

. (Join-Path $PSScriptRoot 'edits.ps1')

$PatchFolder = Join-Path $Programs 'patches\clr'
$BackendName = 'GPU_ENABLE_PAL'

function Add-Interop {
    # The closed libraries, as one zip of the office: TheRock would fetch them by DVC.
    param([string]$Folder)
    $from = Join-Path $Artifacts 'amdgpu-windows-interop'
    Expand-Office -Manifest $Manifest -Name 'amdgpu-windows-interop' -Folder $from
    $inner = Join-Path $from 'amdgpu-windows-interop'
    if (Test-Path -LiteralPath $inner) {
        $from = $inner
    }
    $to = Join-Path $Folder 'shared\amdgpu-windows-interop'
    Copy-Tree -From $from -To $to
    Test-Interop -Folder $to
}

function Test-Interop {
    # Every pointer that DVC left in the checkout must have its file, with its own digest.
    param([string]$Folder)
    foreach ($pointer in @(Get-ChildItem -LiteralPath $Folder -Recurse -Filter '*.dvc' -File)) {
        $file = $pointer.FullName.Substring(0, $pointer.FullName.Length - 4)
        if ($file -match '\\wkmi\\lnx\\') {
            continue
        }
        if ((Get-Content -LiteralPath $pointer.FullName -Raw) -notmatch 'md5: ([0-9a-f]{32})') {
            Stop-Stage -Code 4 -Text ('{0} names no digest of one file' -f $pointer.FullName)
        }
        $wanted = $Matches[1]
        if (-not (Test-Path -LiteralPath $file -PathType 'Leaf')) {
            Stop-Stage -Code 4 -Text ('{0} is absent: amdgpu-windows-interop.zip is of another commit' -f $file)
        }
        if ((Get-FileHash -LiteralPath $file -Algorithm 'MD5').Hash.ToLowerInvariant() -cne $wanted) {
            Stop-Stage -Code 4 -Text ('{0} is not the file that its pointer names' -f $file)
        }
    }
}

function Add-TheRockPatch {
    # Patches that TheRock itself keeps for its submodules, of the same commit.
    param([string]$Folder)
    $root = Join-Path $Folder 'patches\amd-mainline'
    $places = @{ 'rocm-systems' = 'rocm-systems'; 'llvm-project' = 'compiler\amd-llvm'; 'HIPIFY' = 'compiler\hipify' }
    foreach ($name in $places.Keys) {
        $from = Join-Path $root $name
        if (Test-Path -LiteralPath $from) {
            foreach ($patch in @(Get-ChildItem -LiteralPath $from -Filter '*.patch' -File | Sort-Object -Property 'Name')) {
                Add-Patch -Folder (Join-Path $Folder $places[$name]) -Path $patch.FullName
            }
        }
    }
}

function Set-Clr {
    param([string]$Folder)
    $choice = $Manifest.options.clr
    if ($choice -ceq 'pal-patch') {
        foreach ($patch in @($Manifest.patches)) {
            $path = Join-Path $PatchFolder $patch.file
            if (-not (Test-Path -LiteralPath $path) -or (Get-Digest -Path $path) -cne $patch.sha256) {
                Stop-Stage -Code 4 -Text ('{0} is not the patch with SHA-256 {1}' -f $path, $patch.sha256)
            }
            Write-Log ('{0}: status {1}' -f $patch.file, $patch.status)
            Edit-Checkout -Folder $Folder -Path $path
        }
    }
    elseif ($choice -ceq 'old-clr') {
        $old = Join-Path $Sources 'clr'
        Get-Checkout -Manifest $Manifest -Name 'clr' -Folder $old
        $place = Join-Path $Folder 'projects\clr'
        if (Test-Path -LiteralPath $place) {
            Remove-Item -LiteralPath $place -Recurse -Force
        }
        foreach ($part in @('rocclr', 'hipamd', 'opencl')) {
            Copy-Tree -From (Join-Path $old $part) -To (Join-Path $place $part)
        }
        Copy-Item -LiteralPath (Join-Path $old 'CMakeLists.txt') -Destination $place
    }
    elseif ($choice -cne 'rocr') {
        Stop-Stage -Code 2 -Text ('no choice {0} for clr' -f $choice)
    }
}

function Set-Backend {
    # A variable of the machine: hipInfo, the self-test and the service must all run alike.
    param([string]$Choice)
    $value = [NullString]::Value
    if ($Choice -ceq 'rocr') {
        $value = '0'
    }
    [Environment]::SetEnvironmentVariable($BackendName, $value, 'Machine')
    Write-Log ('{0} of the machine: {1}' -f $BackendName, $value)
}

function Install-Runtime {
    # An older runtime must not stay behind and shadow this one.
    param([string]$From)
    if (-not (Test-Path -LiteralPath (Join-Path $From 'bin\hipInfo.exe'))) {
        Stop-Stage -Code 6 -Text ('{0} holds no bin\hipInfo.exe' -f $From)
    }
    if (Test-Path -LiteralPath $Rocm) {
        Remove-Item -LiteralPath $Rocm -Recurse -Force
    }
    Copy-Tree -From $From -To $Rocm
}

# Functions of the stages of the native build: run-stage.ps1 and every stage.ps1 read them in.
# Each ends the stage by itself when something is wrong: Stop-Stage carries the exit code.
#Requires -Version 5.1

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

# 2 bad input, 4 other bytes or none, 5 a tool or the disk, 6 the build failed, 7 the card.
$script:ExitCode = 1
$Programs = 'C:\Program Files\VegaImage'
$State = 'C:\ProgramData\VegaImage'
$Tools = 'C:\VegaBuild\tools'
$Python = Join-Path $Tools 'python\python.exe'
$Rocm = Join-Path $Programs 'rocm'
$Sources = 'B:\src'
$Build = 'B:\build'
$Artifacts = 'B:\artifacts'
$System32 = Join-Path $env:SystemRoot 'System32'

function Stop-Stage {
    param([int]$Code, [string]$Text)
    $script:ExitCode = $Code
    throw $Text
}

function Write-Log {
    # Never Write-Output: what a function says must not become what it returns.
    param([string]$Text)
    [Console]::Out.WriteLine([DateTime]::UtcNow.ToString('yyyy-MM-ddTHH:mm:ssZ') + ' ' + $Text)
}

function Write-Whole {
    # A reader sees the old file or the new one, never half of one.
    param([string]$Path, [string]$Text)
    $encoding = New-Object System.Text.UTF8Encoding($false)
    $bytes = $encoding.GetBytes($Text)
    $temporary = $Path + '.tmp'
    $stream = New-Object System.IO.FileStream($temporary, [System.IO.FileMode]::Create)
    try {
        $stream.Write($bytes, 0, $bytes.Length)
        $stream.Flush($true)
    }
    finally {
        $stream.Dispose()
    }
    if (Test-Path -LiteralPath $Path) {
        # A plain $null would arrive as an empty text.
        [System.IO.File]::Replace($temporary, $Path, [NullString]::Value)
    }
    else {
        [System.IO.File]::Move($temporary, $Path)
    }
}

function Write-Json {
    param([string]$Path, $Value)
    Write-Whole -Path $Path -Text ((ConvertTo-Json -InputObject $Value -Depth 8) + "`n")
}

function Read-Json {
    param([string]$Path)
    if (-not (Test-Path -LiteralPath $Path -PathType 'Leaf')) {
        Stop-Stage -Code 2 -Text ($Path + ' is not there')
    }
    try {
        return (Get-Content -LiteralPath $Path -Raw -Encoding 'UTF8' | ConvertFrom-Json)
    }
    catch {
        Stop-Stage -Code 2 -Text ('{0}: not JSON: {1}' -f $Path, $_.Exception.Message)
    }
}

function Get-Digest {
    param([string]$Path)
    return (Get-FileHash -LiteralPath $Path -Algorithm 'SHA256').Hash.ToLowerInvariant()
}

function New-Folder {
    param([string]$Path)
    if (-not (Test-Path -LiteralPath $Path)) {
        $null = New-Item -ItemType 'Directory' -Path $Path -Force
    }
}

function Get-Source {
    # The locked source of that name and kind; exit 2 when the stage has none.
    param($Manifest, [string]$Name, [string]$Kind)
    foreach ($source in @($Manifest.sources)) {
        if ($source.name -ceq $Name -and $source.kind -ceq $Kind) {
            return $source
        }
    }
    Stop-Stage -Code 2 -Text ('{0}: stage.json lists no {1} source {2}' -f $Manifest.stage, $Kind, $Name)
}

function Assert-Known {
    # What nobody could fetch has no digest: never go on without one.
    param($Manifest, $Source)
    if ($Source.unresolved) {
        $next = 'bring it and lock it: vega-image lock {0} --payload FOLDER' -f $Manifest.target
        if ($Source.kind -eq 'git') {
            $next = 'write its commit into images/{0}.yaml, then: vega-image lock {0}' -f $Manifest.target
        }
        Stop-Stage -Code 4 -Text ('{0} is unresolved in the lock; {1}' -f $Source.name, $next)
    }
}

function Find-Office {
    # The path of a file the office brought, once its size and SHA-256 are the locked ones.
    param($Manifest, [string]$Name)
    $source = Get-Source -Manifest $Manifest -Name $Name -Kind 'file'
    Assert-Known -Manifest $Manifest -Source $source
    $path = Join-Path $Manifest.files_root $source.file
    if (-not (Test-Path -LiteralPath $path -PathType 'Leaf')) {
        Stop-Stage -Code 4 -Text ('{0}: put it there, as the lock has it' -f $path)
    }
    $size = (Get-Item -LiteralPath $path).Length
    if ($size -ne $source.size) {
        Stop-Stage -Code 4 -Text ('{0}: {1} bytes, the lock says {2}' -f $path, $size, $source.size)
    }
    $digest = Get-Digest -Path $path
    if ($digest -cne $source.sha256) {
        Stop-Stage -Code 4 -Text ('{0}: SHA-256 {1}, the lock says {2}' -f $path, $digest, $source.sha256)
    }
    Write-Log ('{0}: as locked' -f $path)
    return $path
}

function Expand-Office {
    # Unpacks a locked zip; a folder that is there was whole, for it is moved into place last.
    param($Manifest, [string]$Name, [string]$Folder)
    $source = Get-Source -Manifest $Manifest -Name $Name -Kind 'file'
    $path = Find-Office -Manifest $Manifest -Name $Name
    $mark = $Folder + '.sha256'
    if ((Test-Path -LiteralPath $Folder) -and (Test-Path -LiteralPath $mark)) {
        if ((Get-Content -LiteralPath $mark -Raw).Trim() -ceq $source.sha256) {
            return
        }
    }
    foreach ($old in @($mark, $Folder, ($Folder + '.new'))) {
        if (Test-Path -LiteralPath $old) {
            Remove-Item -LiteralPath $old -Recurse -Force
        }
    }
    New-Folder -Path (Split-Path -Parent $Folder)
    Add-Type -AssemblyName 'System.IO.Compression.FileSystem'
    # .NET refuses an entry that would leave the folder.
    [System.IO.Compression.ZipFile]::ExtractToDirectory($path, ($Folder + '.new'))
    Move-Item -LiteralPath ($Folder + '.new') -Destination $Folder
    Write-Whole -Path $mark -Text ($source.sha256 + "`n")
}

function Copy-Tree {
    # robocopy: below 8 it succeeded, whatever it copied.
    param([string]$From, [string]$To)
    & (Join-Path $System32 'robocopy.exe') $From $To '/E' '/R:1' '/W:1' '/NP' '/NFL' '/NDL' | Out-Host
    if ($LASTEXITCODE -ge 8) {
        Stop-Stage -Code 5 -Text ('{0} could not be copied to {1}: robocopy {2}' -f $From, $To, $LASTEXITCODE)
    }
}

function Invoke-Native {
    # Runs a program to its end; another exit code than 0 ends the stage.
    param([string]$Program, [string[]]$Words, [string]$Folder = 'B:\', [int]$Code = 6)
    Write-Log ('{0}> {1} {2}' -f $Folder, $Program, ($Words -join ' '))
    # Programs write progress to stderr: that alone must not stop the stage.
    $ErrorActionPreference = 'Continue'
    Push-Location -LiteralPath $Folder
    try {
        & $Program @Words | Out-Host
        $ended = $LASTEXITCODE
    }
    finally {
        Pop-Location
    }
    if ($ended -ne 0) {
        Stop-Stage -Code $Code -Text ('{0} {1} ended with {2}' -f $Program, ($Words -join ' '), $ended)
    }
}

function Read-Native {
    # What a program prints, as one text; another exit code than 0 ends the stage.
    param([string]$Program, [string[]]$Words, [string]$Folder = 'B:\', [int]$Code = 6)
    $ErrorActionPreference = 'Continue'
    Push-Location -LiteralPath $Folder
    try {
        $said = @(& $Program @Words)
        $ended = $LASTEXITCODE
    }
    finally {
        Pop-Location
    }
    if ($ended -ne 0) {
        Stop-Stage -Code $Code -Text ('{0} {1} ended with {2}' -f $Program, ($Words -join ' '), $ended)
    }
    return (($said -join "`n").Trim())
}

function Find-Program {
    # The first of the paths that is there; exit 5 names what is absent.
    param([string]$Name, [string[]]$Paths)
    foreach ($path in $Paths) {
        if (Test-Path -LiteralPath $path -PathType 'Leaf') {
            return $path
        }
    }
    Stop-Stage -Code 5 -Text ('{0} is absent: looked for {1}' -f $Name, ($Paths -join ', '))
}

function Find-Git {
    return (Find-Program -Name 'git' -Paths @((Join-Path $env:ProgramFiles 'Git\cmd\git.exe')))
}

function Get-Checkout {
    # A folder with exactly the locked commit, and nothing else of the history.
    param($Manifest, [string]$Name, [string]$Folder)
    $source = Get-Source -Manifest $Manifest -Name $Name -Kind 'git'
    Assert-Known -Manifest $Manifest -Source $source
    $git = Find-Git
    if (-not (Test-Path -LiteralPath (Join-Path $Folder '.git'))) {
        New-Folder -Path $Folder
        Invoke-Native -Program $git -Words @('init', '--quiet', $Folder) -Code 5
    }
    if (-not (Test-Commit -Git $git -Folder $Folder -Commit $source.commit)) {
        # The office's own mirror, if there is one, is named by git's url.insteadOf.
        Invoke-Native -Program $git -Folder $Folder -Code 4 -Words @(
            'fetch', '--no-tags', '--depth', '1', $source.url, $source.commit
        )
        Invoke-Native -Program $git -Folder $Folder -Code 4 -Words @('checkout', '--force', '--detach', $source.commit)
    }
    if (-not (Test-Commit -Git $git -Folder $Folder -Commit $source.commit)) {
        Stop-Stage -Code 4 -Text ('{0} is not at {1}' -f $Folder, $source.commit)
    }
    Write-Log ('{0} is at {1}' -f $Folder, $source.commit)
}

function Test-Commit {
    param([string]$Git, [string]$Folder, [string]$Commit)
    $ErrorActionPreference = 'Continue'
    $head = @(& $Git '-C' $Folder 'rev-parse' '--verify' '--quiet' 'HEAD')
    if ($LASTEXITCODE -ne 0) {
        return $false
    }
    return (($head -join '').Trim() -ceq $Commit)
}

function Get-Submodule {
    # Submodules at the commits that the checkout names; those of stage.json are compared too.
    param([string]$Folder, [string[]]$Paths)
    $git = Find-Git
    $words = @('-c', 'protocol.version=2', 'submodule', 'update', '--init', '--depth', '1', '--') + $Paths
    Invoke-Native -Program $git -Folder $Folder -Code 4 -Words $words
    foreach ($path in $Paths) {
        $row = Read-Native -Program $git -Folder $Folder -Code 4 -Words @('ls-tree', 'HEAD', '--', $path)
        $parts = $row.Split([char[]]@(' ', "`t"), [System.StringSplitOptions]::RemoveEmptyEntries)
        if ($parts.Count -lt 4) {
            Stop-Stage -Code 4 -Text ('{0} has no submodule {1}' -f $Folder, $path)
        }
        if (-not (Test-Commit -Git $git -Folder (Join-Path $Folder $path) -Commit $parts[2])) {
            Stop-Stage -Code 4 -Text ('{0}\{1} is not at {2}' -f $Folder, $path, $parts[2])
        }
        Write-Log ('{0} is at {1}' -f $path, $parts[2])
    }
}

function Assert-Submodule {
    # The lock names this submodule's commit too: both must say the same.
    param($Manifest, [string]$Name, [string]$Folder)
    $source = Get-Source -Manifest $Manifest -Name $Name -Kind 'git'
    Assert-Known -Manifest $Manifest -Source $source
    if (-not (Test-Commit -Git (Find-Git) -Folder $Folder -Commit $source.commit)) {
        Stop-Stage -Code 4 -Text ('{0} is not at {1}, which the lock names for {2}' -f $Folder, $source.commit, $Name)
    }
}

function Add-Patch {
    # Applies a patch once: checked first, and known again by its being reversible.
    param([string]$Folder, [string]$Path)
    $git = Find-Git
    $ErrorActionPreference = 'Continue'
    & $git '-C' $Folder 'apply' '--check' '--reverse' $Path | Out-Null
    $there = $LASTEXITCODE
    $ErrorActionPreference = 'Stop'
    if ($there -eq 0) {
        Write-Log ('{0}: applied before' -f $Path)
        return
    }
    Invoke-Native -Program $git -Words @('-C', $Folder, 'apply', '--check', $Path)
    Invoke-Native -Program $git -Words @('-C', $Folder, 'apply', $Path)
}

function Find-VisualStudio {
    # The folder of the newest Visual Studio 2022 Build Tools with all components of facts.
    param([string[]]$Components)
    $vswhere = Join-Path ${env:ProgramFiles(x86)} 'Microsoft Visual Studio\Installer\vswhere.exe'
    if (-not (Test-Path -LiteralPath $vswhere)) {
        return ''
    }
    $words = @('-latest', '-products', '*', '-version', '[17.13,18.0)', '-property', 'installationPath')
    foreach ($component in $Components) {
        $words += @('-requires', $component)
    }
    return (Read-Native -Program $vswhere -Words $words -Code 5)
}

function Import-BuildTools {
    # The environment of vcvars64.bat, and the tools in front of everything else on PATH.
    $studio = Find-VisualStudio -Components @('Microsoft.VisualStudio.Component.VC.Tools.x86.x64')
    if ($studio -eq '') {
        Stop-Stage -Code 5 -Text 'Visual Studio Build Tools 17.13 or newer is absent: run the stage prerequisites'
    }
    $batch = Join-Path $Artifacts 'environment.cmd'
    New-Folder -Path $Artifacts
    Write-Whole -Path $batch -Text ("@call `"{0}\VC\Auxiliary\Build\vcvars64.bat`" >NUL`r`n@set`r`n" -f $studio)
    $said = Read-Native -Program (Join-Path $System32 'cmd.exe') -Words @('/d', '/c', $batch) -Code 5
    foreach ($line in $said.Split("`n")) {
        $at = $line.IndexOf('=')
        if ($at -gt 0) {
            [Environment]::SetEnvironmentVariable($line.Substring(0, $at), $line.Substring($at + 1).TrimEnd("`r"), 'Process')
        }
    }
    $first = @(
        (Join-Path $Tools 'ninja'),
        (Join-Path $Tools 'python'),
        (Join-Path $Tools 'python\Scripts'),
        (Join-Path $env:ProgramFiles 'CMake\bin')
    )
    # Behind the compiler: git's tools bring a link.exe too.
    $last = @(
        (Join-Path $env:ProgramFiles 'Git\cmd'),
        (Join-Path $env:ProgramFiles 'Git\usr\bin'),
        'C:\Strawberry\c\bin'
    )
    $env:PATH = ($first + @($env:PATH) + $last) -join ';'
    $env:PYTHONUTF8 = '1'
    # Objects of ccache gave rocBLAS and rocSPARSE duplicate __hip_cuid_ symbols.
    $env:CCACHE_DISABLE = '1'
}

function Set-PipSource {
    # pip takes the office's locked wheels and nothing else: no index could be told from another.
    param($Manifest)
    $folder = Join-Path $Artifacts 'python-wheels'
    Expand-Office -Manifest $Manifest -Name 'python-wheels' -Folder $folder
    $env:PIP_NO_INDEX = '1'
    $env:PIP_FIND_LINKS = $folder
    $env:PIP_DISABLE_PIP_VERSION_CHECK = '1'
}

function Find-Package {
    # The one file of each pattern: pip is given paths, so that no other package of that name fits.
    param([string]$Folder, [string[]]$Patterns)
    foreach ($pattern in $Patterns) {
        $found = @(Get-ChildItem -LiteralPath $Folder -Filter $pattern -File)
        if ($found.Count -ne 1) {
            Stop-Stage -Code 6 -Text ('{0}: one {1} is wanted, {2} are there' -f $Folder, $pattern, $found.Count)
        }
        $found[0].FullName
    }
}

function Install-Package {
    param([string[]]$Words, [string]$Program = $Python)
    Invoke-Native -Program $Program -Words (@('-m', 'pip', 'install') + $Words)
}

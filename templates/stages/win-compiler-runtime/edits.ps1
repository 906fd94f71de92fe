# Puts lines of ours into a file of another project. A patch names the file, a name that stands
# in it once, and the lines; it quotes nothing of that file. Where a name is not there as often
# as the patch says, the checkout is another than the one it was written for: exit 4.
#Requires -Version 5.1

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'

# One character for each byte: what is not ours is written back as it was read.
$Latin = [System.Text.Encoding]::GetEncoding(28591)
$LineFeed = [char]10
$Return = [char]13

function Restore-Checkout {
    # The commit's bytes again: what an earlier run or another choice changed is undone.
    param([string]$Folder)
    $git = Find-Git
    Invoke-Native -Program $git -Code 4 -Words @('-C', $Folder, 'checkout', '--force', '--quiet', 'HEAD', '--', '.')
    Invoke-Native -Program $git -Code 4 -Words @('-C', $Folder, 'clean', '--force', '--force', '-d', '-x', '--quiet')
}

function Find-Word {
    # Each place of a name in a text, as a whole word.
    param([string]$Text, [string]$Word)
    return [regex]::Matches($Text, '(?<![A-Za-z0-9_])' + [regex]::Escape($Word) + '(?![A-Za-z0-9_])')
}

function Assert-Word {
    # Whether the file is what the patch was written for, and was not edited before.
    param([string]$Text, [string]$File, $Patch)
    foreach ($word in @($Patch.present)) {
        if (@(Find-Word -Text $Text -Word $word).Count -eq 0) {
            Stop-Stage -Code 4 -Text ('{0} does not know {1}: the patch is for another commit' -f $File, $word)
        }
    }
    foreach ($word in @($Patch.absent)) {
        if (@(Find-Word -Text $Text -Word $word).Count -gt 0) {
            Stop-Stage -Code 4 -Text ('{0} has {1} already: look whether the patch is still needed' -f $File, $word)
        }
    }
}

function Add-Line {
    # The text with the lines of one edit, which end as the lines around them do.
    param([string]$Text, [string]$File, $Edit)
    $found = @(Find-Word -Text $Text -Word $Edit.anchor)
    if ($found.Count -ne 1) {
        Stop-Stage -Code 4 -Text ('{0} has {1} {2} times, once is wanted: the patch is for another commit' -f $File, $Edit.anchor, $found.Count)
    }
    $at = $found[0].Index
    $end = $Text.IndexOf($LineFeed, $at)
    if ($end -lt 0) {
        Stop-Stage -Code 4 -Text ('{0} ends in the line of {1}: the patch is for another commit' -f $File, $Edit.anchor)
    }
    $newline = [string]$LineFeed
    if ($Text[$end - 1] -ceq $Return) {
        $newline = [string]$Return + $LineFeed
    }
    $place = $end + 1
    if ($Edit.where -ceq 'before') {
        $place = $Text.LastIndexOf($LineFeed, $at) + 1
    }
    $lines = (@($Edit.lines) -join $newline) + $newline
    return $Text.Insert($place, $lines)
}

function Edit-Checkout {
    # Applies one patch to a checkout; a file is written only when all of its edits fitted.
    param([string]$Folder, [string]$Path)
    $patch = Read-Json -Path $Path
    if ($patch.schema -ne 1) {
        Stop-Stage -Code 2 -Text ('{0} is of another schema' -f $Path)
    }
    $inner = $patch.file.Replace('/', '\')
    $file = Join-Path $Folder $inner
    if (-not (Test-Path -LiteralPath $file -PathType 'Leaf')) {
        Stop-Stage -Code 4 -Text ('{0} is absent: the patch {1} is for another commit' -f $file, $Path)
    }
    $text = $Latin.GetString([System.IO.File]::ReadAllBytes($file))
    Assert-Word -Text $text -File $file -Patch $patch
    foreach ($edit in @($patch.edits)) {
        $text = Add-Line -Text $text -File $file -Edit $edit
    }
    [System.IO.File]::WriteAllBytes($file, $Latin.GetBytes($text))
    Write-Log ('{0}: edited by {1}' -f $file, $Path)
}

#Requires -Version 5.1
# Makes the account for provisioning, an administrator with a random password that nobody learns,
# this script included after its end: the only way in is the ssh key. Run again it gives another
# password, so that no two machines of one image share it.
[CmdletBinding()]
param(
    [string]$Programs = 'C:\Program Files\VegaImage'
)

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'

. (Join-Path $PSScriptRoot 'tell.ps1')

# By number: the name of this group differs by language.
$Administrators = 'S-1-5-32-544'

function Get-RandomText {
    # 48 bytes of the system's generator as a SecureString: never a text in memory or in a log.
    $letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    $bytes = New-Object 'byte[]' 48
    $source = [System.Security.Cryptography.RandomNumberGenerator]::Create()
    try {
        $source.GetBytes($bytes)
    }
    finally {
        $source.Dispose()
    }
    $text = New-Object System.Security.SecureString
    foreach ($one in $bytes) {
        # 64 letters: no remainder, so each is as likely as the others.
        $text.AppendChar($letters[$one % 64])
    }
    # One of each class, for an office whose policy demands them.
    foreach ($one in @('A', 'a', '1', '-')) {
        $text.AppendChar([char]$one)
    }
    $text.MakeReadOnly()
    return $text
}

$code = 1
try {
    $settings = Read-Json -Path (Join-Path $Programs 'settings.json')
    $name = [string]$settings.administrator
    $account = Get-LocalUser -Name $name -ErrorAction 'SilentlyContinue'
    if ($null -eq $account) {
        $account = New-LocalUser -Name $name -Password (Get-RandomText) -PasswordNeverExpires -AccountNeverExpires -Description 'Provisioning, by ssh key only'
    }
    else {
        Set-LocalUser -Name $name -Password (Get-RandomText)
    }
    $members = @(Get-LocalGroupMember -SID $Administrators | Where-Object { $_.SID -eq $account.SID })
    if ($members.Count -eq 0) {
        Add-LocalGroupMember -SID $Administrators -Member $name
    }
    Write-Line ('account: ' + $name + ' logs on with the ssh key only')
    $code = 0
}
catch {
    Write-Line ('VEGA-IMAGE FAILED account: ' + $_.Exception.Message)
}
exit $code

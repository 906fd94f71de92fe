"""Names of Windows PowerShell 5.1 that the rules need; all in lower case.

Aliases: what `Get-Alias` lists in a fresh 5.1 session, from Microsoft's page about_Aliases and
the table of aliases compatible between versions; of them only those that stand for a cmdlet
or a function. Newer: Microsoft's pages "What's New in PowerShell" 6.0 to 7.4 and
"Differences between Windows PowerShell 5.1 and PowerShell 7.x".
"""

from __future__ import annotations

ALIASES = frozenset(
    """
    % ? ac asnp cat cd cfs chdir clc clear clhy cli clp cls clv cnsn compare copy cp cpi cpp
    curl cvpa dbp del diff dir dnsn ebp echo epal epcsv epsn erase etsn exsn fc fhx fl foreach
    ft fw gal gbp gc gci gcm gcs gdr ghy gi gin gjb gl gm gmo gp gps gpv group gsn gsnp gsv gtz
    gu gv gwmi h history icm iex ihy ii ipal ipcsv ipmo ipsn irm ise iwmi iwr kill lp ls man md
    measure mi mount move mp mv nal ndr ni nmo npssc nsn nv ogv oh popd ps pushd pwd r rbp rcjb
    rcsn rd rdr ren ri rjb rm rmdir rmo rni rnp rp rsn rsnp rujb rv rvpa rwmi sajb sal saps sasv
    sbp sc scb select set shcm si sl sleep sls sort sp spjb spps spsv start stz sujb sv swmi tee
    trcm type wget where wjb write
    """.split()  # noqa: SIM905 - a table is easier to read and to compare so
)
PROGRAMS = frozenset(
    """
    7z attrib bash bcdboot bcdedit bitsadmin cacls certutil chcp cipher cl clang cmake cmd
    compact cscript ctest defrag diskpart dism dvc expand find findstr format fsutil ftp git
    hipcc hipinfo icacls lib link lld-link makecab mklink mountvol msbuild msiexec nasm net
    netsh nmake ninja nuget patch perl ping pip pnputil powercfg powershell pwsh py python reg
    regsvr32 robocopy rundll32 scp sdelete schtasks secedit setx sfc shutdown slmgr ssh
    ssh-keygen subst sysprep takeown tar taskkill tasklist tzutil vcpkg vssadmin w32tm wbadmin
    wevtutil whoami winget winmgmt winrm winrs wmic wscript wsl wusa xcopy choco
    """.split()  # noqa: SIM905
)
DOWNLOADS = frozenset(
    {"invoke-webrequest", "invoke-restmethod", "start-bitstransfer", "bitsadmin", "iwr", "irm"}
    | {"wget", "curl", "curl.exe", "wget.exe"}
)
NEWER_COMMANDS = frozenset(
    {
        "get-error",
        "get-uptime",
        "remove-service",
        "test-json",
        "join-string",
    }
    | {"remove-alias", "start-threadjob", "get-securerandom"}
)
NEWER_PARAMETERS = frozenset(
    {
        ("convertfrom-json", "-ashashtable"),
        ("convertfrom-json", "-depth"),
        ("convertto-json", "-asarray"),
        ("foreach-object", "-parallel"),
        ("get-content", "-asbytestream"),
        ("invoke-restmethod", "-skipcertificatecheck"),
        ("invoke-webrequest", "-skipcertificatecheck"),
        ("join-path", "-additionalchildpath"),
        ("select-string", "-raw"),
        ("set-content", "-asbytestream"),
        ("split-path", "-extension"),
        ("split-path", "-leafbase"),
        ("test-connection", "-tcpport"),
    }
)
NEWER_VARIABLES = frozenset({"$iswindows", "$islinux", "$ismacos", "$iscoreclr", "$psstyle"})

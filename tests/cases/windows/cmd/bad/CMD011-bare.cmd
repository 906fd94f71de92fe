@echo off
powershell -File "x.ps1" & rem refuse: CMD011
"%SystemRoot%\System32\WindowsPowerShell\v1.0\powershell.exe" -NoProfile -Command "x" & rem refuse: CMD011
if exist "x.ps1" (
  pwsh.exe -NoLogo "x.ps1" & rem refuse: CMD011
)
exit /b 0

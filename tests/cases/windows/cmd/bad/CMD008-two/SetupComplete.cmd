@echo off
"%SystemRoot%\a.exe"
if not exist "x" "%SystemRoot%\b.exe" & rem refuse: CMD008
sc.exe query & rem refuse: CMD008
exit /b 0

@echo off
"%SystemRoot%\System32\shutdown.exe" /r /t 0 & rem refuse: CMD007
exit /b 0

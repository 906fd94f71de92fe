@echo off
rem Run once by Windows Setup as SYSTEM, before anybody logs on. Registers the task, no more.
set "VEGA_LOG=%SystemRoot%\Temp\vega-register-task.log"
"%SystemRoot%\System32\WindowsPowerShell\v1.0\powershell.exe" -NoProfile -NonInteractive -ExecutionPolicy Bypass -File "%ProgramFiles%\VegaImage\firstboot\register-task.ps1" > "%VEGA_LOG%" 2>&1
exit /b %ERRORLEVEL%

@echo off
rem A comment may say "anything ( at all, and %ERRORLEVEL% too.
:: so may this one)
setlocal EnableExtensions
set "VEGA=%ProgramFiles%\VegaImage"
set "ADMIN_PASSWORD="
set "ADMIN_PASSWORD=%SECRET%"
set COUNT=0
if not exist "%VEGA%\x.exe" (
  echo there is no x.exe ^(yet^)
  goto :missing
) else if defined VEGA_SKIP (
  exit /b 0
)
for %%D in (C D E) do (
  if exist "%%D:\vega\media.txt" set "DRIVE=%%D:"
)
for /f "usebackq delims=" %%L in ("%VEGA%\list.txt") do call :one "%%L"
"%SystemRoot%\System32\WindowsPowerShell\v1.0\powershell.exe" -NoProfile ^
  -NonInteractive -File "%DRIVE%\vega\scripts\prepare.ps1" > "%TEMP%\vega.log" 2>&1
if errorlevel 1 goto failed
if %ERRORLEVEL% NEQ 0 exit /b %ERRORLEVEL%
echo (done)
goto :eof
:one
echo %~1
exit /b 0
:failed
exit /b 6
:missing
exit /b 5

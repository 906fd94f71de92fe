@echo off
if exist "x" (
  ver
  if %ERRORLEVEL% NEQ 0 exit /b 1 & rem refuse: CMD012
)
ver & exit /b %errorlevel% & rem refuse: CMD012
exit /b %ERRORLEVEL%

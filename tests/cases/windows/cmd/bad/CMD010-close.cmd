@echo off
if exist "x" (
  echo x
)
) & rem refuse: CMD010
exit /b 0

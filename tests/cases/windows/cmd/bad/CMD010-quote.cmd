@echo off
rem refuse-next: CMD010
echo "open
exit /b 0

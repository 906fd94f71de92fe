@echo off
rem refuse: CMD002
exit /b 0

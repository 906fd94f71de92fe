@echo off
rem grün refuse: CMD001
exit /b 0

rem refuse: CMD003
@echo off
exit /b 0

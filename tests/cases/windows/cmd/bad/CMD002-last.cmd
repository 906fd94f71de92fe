@echo off
exit /b 0 & rem refuse: CMD002
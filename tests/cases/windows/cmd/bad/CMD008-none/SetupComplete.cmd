@echo off & rem refuse: CMD008 refuse: CMD003
set "X=1"
exit /b 0

@echo off
goto missing & rem refuse: CMD006
:here
call :nowhere & rem refuse: CMD006
if exist "x" goto :gone & rem refuse: CMD006
goto here
exit /b 0

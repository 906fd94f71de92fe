@echo off
copy %SystemRoot%\a.txt "b.txt" & rem refuse: CMD005
%ProgramFiles%\VegaImage\x.exe & rem refuse: CMD005
C:\Program Files\VegaImage\x.exe & rem refuse: CMD005
type "a" > %LOG% & rem refuse: CMD005
set X=%ProgramData%\VegaImage & rem refuse: CMD005
call %~dp0\x.cmd & rem refuse: CMD005
exit /b 0

@echo off
set "ADMIN_PASSWORD=hunter2" & rem refuse: CMD009
set VEGA_TOKEN=abc & rem refuse: CMD009
net user vega Hunter2 /add & rem refuse: CMD009
exit /b 0

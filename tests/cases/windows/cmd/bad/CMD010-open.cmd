@echo off
rem refuse-next: CMD010
if exist "x" (
  exit /b 0 & rem refuse: CMD004

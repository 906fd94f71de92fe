@echo off
if exist "x" (
  exit /b 0 & rem refuse: CMD004
)

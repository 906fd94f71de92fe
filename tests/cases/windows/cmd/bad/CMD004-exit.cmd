@echo off
exit 0 & rem refuse: CMD004

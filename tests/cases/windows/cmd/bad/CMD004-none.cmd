@echo off
echo done & rem refuse: CMD004

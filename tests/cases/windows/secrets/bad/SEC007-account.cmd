net user vega Hunter2 /add & rem refuse: SEC007
net.exe user vega Hunter2 & rem refuse: SEC007

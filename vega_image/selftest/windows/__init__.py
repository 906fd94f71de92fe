"""What PowerShell gathered on a Windows machine, read and judged; nothing here runs on it."""

exit 0

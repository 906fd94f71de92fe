$options = New-PSSessionOption -SkipCACheck # refused

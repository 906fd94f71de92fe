@rem refuse: CMD003 refuse: CMD004

IN_WORKER = False

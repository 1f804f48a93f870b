"""What training survives: non-finite steps, lack of memory, SIGTERM."""

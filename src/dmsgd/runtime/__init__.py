"""What work needs of the machine: memory, threads, progress and Ctrl-C."""

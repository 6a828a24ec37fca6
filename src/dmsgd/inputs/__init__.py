"""What users pass, checked and converted: arrays, seeds, threads, memory limits."""

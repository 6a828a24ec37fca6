"""What users pass, checked and converted: arrays, labels, counts, seeds; and text of messages."""

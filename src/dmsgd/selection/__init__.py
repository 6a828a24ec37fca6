"""One set of items, best first: what to label, keep or show (`select`)."""

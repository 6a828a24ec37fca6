"""Pages: one HTML file each, without a script, that loads nothing."""

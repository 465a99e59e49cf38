"""What programs use: the same operations for every store."""

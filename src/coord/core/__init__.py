"""The rules of coord: pure functions over records. No I/O, clock or randomness lives here."""

"""A clock that is set by hand."""


class HandClock:
    """Gives epoch milliseconds; time passes only when told to."""

    def __init__(self) -> None:
        self.ms = 1_767_506_400_000

    def __call__(self) -> int:
        return self.ms

    def pass_seconds(self, seconds: float) -> None:
        self.ms += int(seconds * 1000)

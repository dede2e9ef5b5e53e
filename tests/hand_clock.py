"""A clock that stands still until a test moves it."""


class HandClock:
    """Seconds that pass when a test says so: called like `time.monotonic`, moved by its `now`."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

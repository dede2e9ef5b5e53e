"""The SQL store: the truth about every submission, run, piece of evidence and verdict. Redis only carries wake-ups."""

"""Guest code that runs without any learner code in its pod: scanner, clean room, reference loader."""

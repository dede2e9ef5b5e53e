"""Guest code that shares an interpreter with learner code: it observes and obeys, and nobody believes it."""

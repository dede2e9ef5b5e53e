"""How code is run: runners, the pods they start, and the guest code that lives in the pods."""

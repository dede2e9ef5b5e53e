"""The corpus: what the grader must refuse, and what it must not refuse.

    python -m tests.corpus [--only V,T03] [--lanes 2] [--report FOLDER]

plays every case through the real sandbox and prints the matrix; `docs/security.md` says what stands against what.
"""

"""What went wrong in a learner's run: the likely cause and what to do, from data rows.

`diagnose` explains an exception, `silent_mistakes` what raised nothing. Neither decides an outcome.
"""

from checks.diagnosis.matching import diagnose
from checks.diagnosis.rows import Diagnosis
from checks.diagnosis.silent import silent_mistakes

__all__ = ["Diagnosis", "diagnose", "silent_mistakes"]

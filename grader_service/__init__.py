"""The trusted core of the grading service: models, intake, the grading flow and the command line."""

__version__ = "0.2.0"

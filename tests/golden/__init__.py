"""Golden pages: ordinary mistakes as learners make them, and what they are told.

    python -m tests.golden.run [NAME…]          # grade them for real as rehearsals, and keep what came out
    python -m tests.golden.run --pages [NAME…]  # make the pages anew from the kept evidence, in seconds
    python -m tests.golden.pictures FOLDER      # the reports as pictures

`mistakes/` holds what was handed in, some of it as a diff from another submission, `mistakes.toml` what is wrong with
it and what has to come out, `evidence/` what a run left behind and the page that follows from it: the terminal's text
and the text of the report.
"""

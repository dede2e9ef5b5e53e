"""How every page is made of templates: nothing in a text can become markup, or steer what stands around it."""

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from grader_service.report import formats, words
from grader_service.report.drawing import stacked


def environment_of(*packages: str) -> Environment:
    """The templates of these packages, with what every page says numbers and names in.

    Of several packages the first one that has a template's name is taken.
    """
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        finalize=formats.tidy,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"marks": words.MARKS, "stacked": stacked}
    made.filters |= {
        "facts": formats.facts,
        "points": formats.points,
        "rate": formats.rate,
        "ratio": formats.ratio,
        "seconds": formats.seconds,
        "spans": formats.spans,
        "words": words.title,
    }
    return made

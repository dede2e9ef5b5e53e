"""How every page is made of templates: nothing in a text can become markup, or steer what stands around it."""

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from grader_service.report.formats import tidy


def environment_of(*packages: str) -> Environment:
    """The templates of these packages; the first one that has a name is taken."""
    return Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        finalize=tidy,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

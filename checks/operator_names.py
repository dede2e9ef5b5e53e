"""Names of DALI operators as learners write them."""

import re

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def fn_name(schema: str) -> str:
    """The function of `nvidia.dali.fn` for a schema name: `decoders__ImageCrop` is `fn.decoders.image_crop`."""
    *modules, operator = schema.lstrip("_").split("__")
    return ".".join(("fn", *modules, _WORDS.sub("_", operator).lower()))

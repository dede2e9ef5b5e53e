"""`grader images`: builds the images that pods and the service run from.

Each command imports what it uses: no other command should wait for Docker's client.
"""

from enum import StrEnum
from typing import Annotated

import typer
from rich.table import Table

from grader_service.cli.output import ProgressDisplay, console

app = typer.Typer(help="Images: build, list.", no_args_is_help=True, rich_markup_mode=None)
_BUILD_TIMEOUT_S = 3600.0


class ImageChoice(StrEnum):
    """Which image."""

    ALL = "all"
    LAB = "lab"
    SERVICE = "service"
    STAND_INS = "stand-ins"


class BaseChoice(StrEnum):
    """Where the base image comes from."""

    AUTO = "auto"
    REGISTRY = "registry"
    DEBOOTSTRAP = "debootstrap"


@app.command("build")
def build_images(
    image: Annotated[ImageChoice, typer.Argument(help="Which image to build.")] = ImageChoice.ALL,
    base: Annotated[
        BaseChoice, typer.Option(help="auto: a public base where a registry answers, else Debian packages.")
    ] = BaseChoice.AUTO,
    *,
    rebuild: Annotated[bool, typer.Option(help="Build even when the image is up to date.")] = False,
) -> None:
    """Build the images from their lock files. Needs a Docker engine; no container registry.

    `stand-ins` are Redis and PostgreSQL for compose.yaml where no registry answers; `all` leaves them out.
    """
    from images.build import RECIPES, build
    from images.standins.build import build_stand_ins
    from sandbox.docker_engine import connect_engine

    if image is ImageChoice.STAND_INS:
        with ProgressDisplay() as progress:
            made = build_stand_ins(connect_engine(_BUILD_TIMEOUT_S), progress.stage)
        for name, image_id in made.items():
            typer.echo(f"{name}: {image_id}")
        return
    names = list(RECIPES) if image is ImageChoice.ALL else [image.value]
    with ProgressDisplay() as progress:
        built = build(
            connect_engine(_BUILD_TIMEOUT_S), names, base_kind=base.value, rebuild=rebuild, say=progress.stage
        )
    for name, image_id in built.items():
        typer.echo(f"{name}: {image_id}")


@app.command("list")
def list_images() -> None:
    """List the images on this engine and whether they are of this version's lock files."""
    from images.build import BASE_LABEL, RECIPES, recipe_digest
    from sandbox.docker_engine import connect_engine

    client = connect_engine()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("image", "id", "base", "size", "state"):
        table.add_column(heading)
    for recipe in RECIPES.values():
        state = recipe_digest(recipe)[:12]
        for found in client.images.list(name=recipe.name):
            tags = [tag.rpartition(":")[2] for tag in found.tags]
            current = "current" if state in tags else "of another version"
            base = (found.labels or {}).get(BASE_LABEL, "")
            table.add_row(recipe.name, found.short_id, base, f"{found.attrs['Size'] / 1e9:.1f} GB", current)
    console().print(table)

"""`grader images`: builds the images that pods and the service run from.

Each command imports what it uses: no other command should wait for Docker's client.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from grader_service.cli.loading import group
from grader_service.cli.output import ProgressDisplay, console, table_of

app = group("Images: build, list, SBOM.")
_BUILD_TIMEOUT_S = 3600.0


class ImageChoice(StrEnum):
    """Which image; typer takes no list of a Literal."""

    ALL = "all"
    LAB = "lab"
    SERVICE = "service"
    STAND_INS = "stand-ins"


@app.command("build")
def build_images(
    images: Annotated[
        list[ImageChoice] | None,
        typer.Argument(metavar="IMAGE", help="all, lab, service or stand-ins."),
    ] = None,
    base: Annotated[
        Literal["auto", "registry", "debootstrap"],
        typer.Option(help="auto: a public image if a registry answers, else one of Debian packages."),
    ] = "auto",
    lab_lock: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            readable=True,
            help="Build the lab image with the packages of this lock file; set GRADER_LAB_IMAGE to the printed tag.",
        ),
    ] = None,
    *,
    rebuild: Annotated[bool, typer.Option(help="Build even when the image is up to date.")] = False,
) -> None:
    """Build images from their lock files, in parallel. Needs a Docker engine, but no container registry.

    `all`, the default, are `lab` and `service`. `stand-ins` are Redis and PostgreSQL for compose.yaml where no registry
    answers.
    """
    from images.build import RECIPES, build, lab_with
    from sandbox.docker.engine import connect_engine

    wanted = set(images or [ImageChoice.ALL])
    recipes = {name: recipe for name, recipe in RECIPES.items() if wanted & {ImageChoice.ALL, ImageChoice(name)}}
    if lab_lock is not None:
        if "lab" not in recipes:
            raise typer.BadParameter("it is for the lab image; name `lab` or `all`", param_hint="--lab-lock")
        recipes["lab"] = lab_with(lab_lock)
    client = connect_engine(_BUILD_TIMEOUT_S)
    with ProgressDisplay() as progress:
        built = build(
            client,
            list(recipes.values()),
            base_kind=base,
            rebuild=rebuild,
            say=progress.note,
            stand_ins=ImageChoice.STAND_INS in wanted,
        )
    for name, image_id in built.items():
        typer.echo(f"{name}: {image_id}")


@app.command("list")
def list_images() -> None:
    """List the images on this engine, and whether they match this version's lock files."""
    from images.build import BASE_LABEL, RECIPES, recipe_digest
    from sandbox.docker.engine import connect_engine

    client = connect_engine()
    table = table_of("image", "id", "base", "size", "state", overflow="ellipsis")
    for recipe in RECIPES.values():
        state = recipe_digest(recipe)[:12]
        for found in client.images.list(name=recipe.name):
            tags = [tag.rpartition(":")[2] for tag in found.tags]
            current = "current" if state in tags else "of another version"
            base = (found.labels or {}).get(BASE_LABEL, "")
            table.add_row(recipe.name, found.short_id, base, f"{found.attrs['Size'] / 1e9:.1f} GB", current)
    console().print(table)


@app.command("sbom")
def show_sbom(
    image: Annotated[str, typer.Argument(metavar="IMAGE", help="Such as grader-service:latest, or an id.")],
) -> None:
    """Print the SBOM of an image (packages, versions, licences) as CycloneDX JSON; it is made with the image."""
    from images.sbom import read_sbom
    from sandbox.docker.engine import connect_engine

    typer.echo(read_sbom(connect_engine(), image), nl=False)

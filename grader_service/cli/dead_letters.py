"""`grader dead-letters`: messages that could not be handled, kept for an operator."""

import sys
from typing import Annotated

import typer
from redis.exceptions import RedisError

from grader_service import wiring
from grader_service.cli.arguments import operator, service_store
from grader_service.cli.loading import group
from grader_service.cli.output import console, table_of, when
from grader_service.errors import InfrastructureError, UsageError
from grader_service.settings import Settings
from grader_service.store import dead_letters

app = group("Messages that could not be handled: list, show, post, remove.")

LetterId = Annotated[int, typer.Argument(metavar="ID", help="As listed.")]


@app.command("list")
def list_letters() -> None:
    """List them, newest first. Exit code 1 when there are any."""
    letters = dead_letters.letters(service_store())
    table = table_of("id", "came", "queue", "task", "bytes", "reason")
    for letter in letters:
        kept = "" if letter.whole else f" (kept: {dead_letters.LARGEST_BYTES})"
        size = f"{letter.size_bytes}{kept}"
        table.add_row(str(letter.id), when(letter.came_at), letter.queue, letter.task_id or "", size, letter.reason)
    if letters:
        console().print(table)
        raise typer.Exit(1)
    console().print("none")


@app.command("show")
def show(letter_id: LetterId) -> None:
    """Write the raw bytes of a message. Its sender chose them: do not print them to a terminal unchecked."""
    _, data = dead_letters.letter(service_store(), letter_id)
    sys.stdout.buffer.write(data)


@app.command("post")
def post(letter_id: LetterId) -> None:
    """Put a message back on its queue, after what made it fail was fixed."""
    store = service_store()
    letter, data = dead_letters.letter(store, letter_id)
    if not letter.whole:
        raise UsageError(
            f"dead letter {letter_id} had {letter.size_bytes} bytes, of which {len(data)} were kept; messages of that "
            "size are not accepted: remove it with `grader dead-letters remove`, and tell its sender"
        )
    try:
        wiring.open_redis(Settings()).lpush(letter.queue, data)
    except RedisError as error:
        raise InfrastructureError(f"the broker did not accept it, so the dead letter stays: {error}") from error
    if dead_letters.remove(store, letter, operator(), "posted"):
        console().print(f"{letter_id}: put back on the queue {letter.queue}")
    else:
        console().print(f"{letter_id}: failed again, and stays a dead letter")
        raise typer.Exit(1)


@app.command("remove")
def remove(letter_id: LetterId) -> None:
    """Delete a message permanently."""
    store = service_store()
    letter, _ = dead_letters.letter(store, letter_id)
    if dead_letters.remove(store, letter, operator(), "removed"):
        console().print(f"{letter_id}: removed")
    else:
        console().print(f"{letter_id}: arrived once more just now, so it was not removed")
        raise typer.Exit(1)

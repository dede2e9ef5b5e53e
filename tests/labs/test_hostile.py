"""Files that are meant to keep the grader busy, or were saved by the wrong program, get one clear error."""

import random
import subprocess
import sys

import pytest

from grader_service.labs.documents import MAX_BYTES, Form, read_document
from tests.labs.texts import TOML, YAML, inspected

FULL = MAX_BYTES - 64


@pytest.mark.parametrize(
    ("content", "form", "code", "place"),
    [
        (b"#" * (MAX_BYTES + 1), Form.TOML, "document.size", (1, 1)),
        (b"\xef\xbb\xbf" + TOML.encode(), Form.TOML, "document.encoding", (1, 1)),
        (b"\xef\xbb\xbf" + YAML.encode(), Form.YAML, "document.encoding", (1, 1)),
        (TOML.encode("utf-16"), Form.TOML, "document.encoding", (1, 1)),
        (b'a = 1\r\nb = "\xc3\xa4\xff"', Form.TOML, "document.encoding", (2, 7)),
        (b"a.b." * (FULL // 4) + b"c = 1", Form.TOML, "document.depth", (1, 1)),
        (b"x = 1\n[" + b" . ".join([b'"a"'] * 40) + b"]", Form.TOML, "document.depth", (2, 2)),
        (b"a = " + b"[" * FULL, Form.TOML, "document.depth", (1, 1)),
        (b"a = " + b"[" * 60 + b"]" * 60, Form.TOML, "document.depth", (1, 1)),
        (b"a = " + b"{ a = " * 9000, Form.TOML, "document.depth", (1, 1)),
        (b"a = " + b"9" * FULL, Form.TOML, "syntax", (1, 1)),
        (b"a = 0x" + b"f" * FULL, Form.TOML, "value.wrong", (1, 5)),
        (b'a = """', Form.TOML, "syntax", (1, 8)),
        (b"a = 1\nb = \x00", Form.TOML, "syntax", (2, 5)),
        (b"a: " + b"[" * FULL, Form.YAML, "document.depth", (1, 36)),
        (b"- " * (FULL // 2), Form.YAML, "document.depth", (1, 67)),
        (b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n", Form.YAML, "yaml.alias", (1, 4)),
        (b"a: *a", Form.YAML, "yaml.alias", (1, 4)),
        (b"a: !!python/object/apply:os.system ['true']", Form.YAML, "yaml.tag", (1, 4)),
        (b"a: 1\nb: !mine 2", Form.YAML, "yaml.tag", (2, 4)),
        (b"a: 1\n---\na: 2", Form.YAML, "yaml.documents", (2, 1)),
        (b"a: 1\nb: 2\na: 3", Form.YAML, "key.twice", (3, 1)),
        (b"a:\n  b: 1\n  b: {b: 2, b: 3}", Form.YAML, "key.twice", (3, 3)),
        (b"no: 1", Form.YAML, "yaml.key", (1, 1)),
        (b"a: 1\n7: 1", Form.YAML, "yaml.key", (2, 1)),
        (b"? [a]\n: 1", Form.YAML, "yaml.key", (1, 3)),
        (b"a: 1\n<<: {b: 2}", Form.YAML, "yaml.tag", (2, 1)),
        (b"a: 1\n b: 2", Form.YAML, "syntax", (2, 3)),
        (b"a: 'x", Form.YAML, "syntax", (1, 6)),
        (b"a: 1\nb: \x07", Form.YAML, "syntax", (2, 4)),
        (b"a: 2026-13-45", Form.YAML, "syntax", (1, 4)),
        (b"a: " + b"9" * FULL, Form.YAML, "syntax", (1, 4)),
        (b"a: .inf", Form.YAML, "value.wrong", (1, 4)),
        (b"- 1", Form.YAML, "value.wrong", (1, 1)),
        (b"", Form.YAML, "value.wrong", (1, 1)),
    ],
    ids=lambda value: value[:20].decode("latin-1") if isinstance(value, bytes) else None,
)
def test_what_cannot_be_read_is_refused(content, form, code, place):
    """With a code of its own and the place where it begins."""
    mistakes = read_document(content, form)
    assert code in {mistake.code for mistake in mistakes}
    assert place in {(mistake.line, mistake.column) for mistake in mistakes}


BUSY = {
    "toml": [
        b"".join(b".".join([b"a%d" % number] * 20) + b" = 1\n" for number in range(FULL // 130)),
        b"[[a]]\n[[a.b]]\n" * (FULL // 14),
        b'"' * FULL,
        b"a" * FULL + b" = 1",
        b'a = """' + b"\\\n" * (FULL // 2 - 8) + b'"""',
        b"steps = [{ checks = [" + b"{id = 'jpeg_dataset', params = {a = 1}}," * (FULL // 42) + b"]}]",
    ],
    "yaml": [
        b"a: [" + b"1," * (FULL // 2) + b"]",
        b"".join(b"k%d: 1\n" % (number % 5000) for number in range(FULL // 10)),
        b"a: 1" + b":59" * (FULL // 3),
        b"steps:\n" + b"- a\n" * (FULL // 4),
        b"---\n" * (FULL // 4),
    ],
}


@pytest.mark.slow
def test_time_and_memory_are_bounded():
    """A process with a minute of processor time and 1 GiB of memory reads every one of them, and more at random."""
    generator = random.Random(20)
    soup = [bytes(generator.choices(b"[]{}\"'=:#-,.ab1 \n&*!|>?", k=FULL)) for _ in range(2)]
    code = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from grader_service.labs.documents import Form
from grader_service.labs.specs import opened
from grader_service.labs.discovery import LabText
rest = sys.stdin.buffer.read()
while rest:
    form, size, rest = rest[:4].decode(), int(rest[4:12]), rest[12:]
    lab, _, mistakes = opened(LabText(None, rest[:size], Form(form), "f", "o"))
    print(lab is None and len(mistakes) > 0)
    rest = rest[size:]
"""
    cases = [(form, content) for form, contents in BUSY.items() for content in [*contents, *soup]]
    text_in = b"".join(form.encode() + b"%8d" % len(content) + content for form, content in cases)
    done = subprocess.run([sys.executable, "-c", code], input=text_in, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert done.stdout.split() == [b"True"] * len(cases)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("id: small", "id: no", 'got false; YAML reads no as the truth value false, so write it in quotes: "no"'),
        ("id: baseline", "id: on", 'got true; YAML reads on as the truth value true, so write it in quotes: "on"'),
        ("version: 1.0.0", "version: 1.0", 'YAML reads 1.0 as the number 1.0, so write it in quotes: "1.0"'),
        ("title: A small lab", "title: 12:30", 'YAML reads 12:30 as the number 750, so write it in quotes: "12:30"'),
        ("title: A small lab", "title:", "got nothing"),
        ("title: A small lab", "title: ~", 'YAML reads ~ as nothing, so write it in quotes: "~"'),
    ],
)
def test_words_that_yaml_reads_otherwise_are_explained(old, new, says):
    """`no` is a truth value in YAML 1.1, and a version may be a number."""
    (found,) = [mistake for mistake in inspected(YAML.replace(old, new), Form.YAML).mistakes if says in mistake.message]
    assert found.line == YAML.split("\n").index(next(row for row in YAML.split("\n") if old in row)) + 1


def test_truth_values_of_yaml_are_taken_where_they_are_meant():
    """`yes` is a truth value where one is wanted."""
    first = "      - id: jpeg_dataset\n"
    advice = "      - id: reflections\n        points: 5\n        optional: yes\n"
    lab = inspected(YAML.replace(first, advice + first), Form.YAML).lab
    assert lab is not None
    assert lab.steps[0].checks[0].optional is True

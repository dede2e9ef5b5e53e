"""What newcomers read first cannot drift: links lead somewhere, paths and packages are those of the tree."""

import re
from collections import Counter

import pytest
import yaml

from tests.levels.parts import ROOT

DOCS = ROOT / "docs"
FRONT = [ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")]
RECORDS = sorted((DOCS / "decisions").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *FRONT, *sorted(DOCS.rglob("*.md"))]
TOPS = {path.name for path in ROOT.iterdir()}
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")


def named(path):
    """How a page is called in the output of pytest."""
    return str(path.relative_to(ROOT))


def prose(path):
    """A page without its blocks of code."""
    return re.sub(r"(?ms)^```.*?^```", "", path.read_text())


def anchors(path):
    """The anchors of a page's headings, as GitHub makes them; headings that are alike get a number."""
    seen, found = Counter(), set()
    for title in re.findall(r"(?m)^#{1,6} (.+)$", prose(path)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    """To a file of the tree, and where an anchor is named, to a heading of it."""
    for target in LINK.findall(prose(page)):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name) if name else page
        assert path.exists(), target
        assert not anchor or path.suffix != ".md" or anchor in anchors(path), target


@pytest.mark.parametrize("page", [*FRONT, *RECORDS], ids=named)
def test_paths_are_those_of_the_tree(page):
    """Paths stand from the repository's root, so that whoever moves a file finds all that name it."""
    for text in re.findall(r"`([^`\s]+)`", prose(page)):
        top = text.partition("/")[0]
        if top in TOPS and re.fullmatch(r"[\w./-]+", text):
            assert (ROOT / text).exists(), text
        else:
            assert not re.fullmatch(r"[\w.-]+(/[\w.-]+)+\.\w+", text), f"{text} does not begin at the root"


def test_every_page_is_in_the_index_once():
    """Under the reader for whom it is; further links in running text are free."""
    entries = Counter(re.findall(r"(?m)^- \[[^\]]+\]\(([^)#]+)\)", (DOCS / "README.md").read_text()))
    records = set(RECORDS) - {DOCS / "decisions" / "README.md"}
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md") if path not in records}
    assert entries == Counter(pages - {"README.md"})


def test_every_record_is_in_its_index_and_has_its_parts():
    """And is short enough to be read."""
    rows = re.findall(r"(?m)^\| \[[^\]]+\]\(([^)]+)\) \|", (DOCS / "decisions" / "README.md").read_text())
    assert sorted(rows) == [path.name for path in RECORDS if path.name != "README.md"]
    for name in rows:
        text = (DOCS / "decisions" / name).read_text()
        assert re.findall(r"(?m)^## (.+)$", text) == ["Context", "Decision", "Consequences", "Alternatives"]
        assert len(text.splitlines()) <= 45, name


def test_the_front_page_leads_to_the_others():
    """Index, glossary, and what a contributor needs."""
    targets = set(LINK.findall((ROOT / "README.md").read_text()))
    wanted = {"docs/README.md", "docs/glossary.md", "CHANGELOG.md", "LICENSE", *(path.name for path in FRONT)}
    assert wanted <= targets


def test_every_package_is_on_the_map():
    """ARCHITECTURE.md has a line for each; packages of built-in checks share one."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    listed = re.search(r"<!-- packages:.*?-->(.*)<!-- end of packages -->", text, re.DOTALL)[1]
    found = {
        f"{path.parent.relative_to(ROOT)}/"
        for root in ("grader_service", "sandbox", "checks", "images")
        for path in (ROOT / root).rglob("__init__.py")
        if len(path.relative_to(ROOT).parts) <= (4 if root == "sandbox" else 3)
        and not (path.parent / "check.py").exists()
    }
    assert set(re.findall(r"`((?:grader_service|sandbox|checks|images)/[\w/]*)`", listed)) == found


def test_hooks_run_the_linters_of_make_lint():
    """From .venv, without a network; whoever uses neither is told by `make check`."""
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [repository["repo"] for repository in config["repos"]] == ["local"]
    programs = {hook["entry"].split()[0] for hook in config["repos"][0]["hooks"] if hook["language"] == "system"}
    recipe = re.search(r"(?m)^lint: setup\n\t@(.*)$", (ROOT / "Makefile").read_text())[1]
    assert programs == {command.split()[0].replace("$(BIN)", ".venv/bin") for command in recipe.split("&&")}


def test_the_page_of_measuring_begins_for_everybody():
    """One page before the first detail, without the words of the trade."""
    first = (DOCS / "measurement.md").read_text().partition("## Tiers of evidence")[0]
    assert len(first.splitlines()) <= 45
    for word in ("logarithm", "t-test", "variance", "NVML", "cgroup", "seccomp", "sequential"):
        assert word not in first

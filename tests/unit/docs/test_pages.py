"""The pages follow the code: every reason, setting, hook, protocol, method and link."""

from __future__ import annotations

import ast
import inspect
import re
import runpy
import tomllib
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from nodewise import plugin
from nodewise.catalogue.loading import load_catalogue
from nodewise.domain.errors import CATALOGUE
from nodewise.rpc.access import RULES
from nodewise.runtime.identity.checks import check_identity
from nodewise.runtime.settings import Settings
from nodewise_cli.app import app

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
# What the clients' toolchains put beside our pages.
FOREIGN = {"node_modules", "target", "build", "dist"}
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
        *(
            page
            for folder in ("docs", "examples", "research", "clients")
            for page in (ROOT / folder).rglob("*.md")
            if not FOREIGN & set(page.parts)
        ),
    ]
)


def text_of(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def plugin_pages() -> str:
    return "\n".join(
        text_of(str(page.relative_to(DOCS))) for page in (DOCS / "plugins.md", *(DOCS / "plugins").glob("*.md"))
    )


@pytest.fixture(scope="module")
def generator() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "tools" / "generate_docs.py"))


def test_generated_pages_are_fresh(generator: dict[str, Any]) -> None:
    for name, text in generator["renewed_pages"]().items():
        assert text_of(name) == text, f"{name} is stale: run `.venv/bin/python tools/generate_docs.py`"


def test_every_reason_is_documented() -> None:
    page = text_of("errors.md")
    for reason, entry in CATALOGUE.items():
        assert f"| `{reason}` |" in page
        assert entry.meaning in page


def test_every_setting_is_documented_with_a_meaning() -> None:
    page = text_of("guides/operations.md")
    names = []
    for name, field in Settings.model_fields.items():
        inner = getattr(field.annotation, "model_fields", None)
        if is_dataclass(field.annotation):
            inner = [each.name for each in fields(field.annotation)]
        names += [name] if inner is None else [f"{name}.{each}" for each in inner]
    for name in names:
        (line,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` | `NODEWISE_")]
        assert f"`NODEWISE_{name.upper().replace('.', '__')}`" in line
        assert len(line.split("|")[4].strip()) > 5, line


def test_the_settings_and_the_catalogue_of_the_page_are_such(tmp_path: Path) -> None:
    settings, catalogue = re.findall(r"```toml\n(.*?)```", text_of("guides/operations.md"), re.DOTALL)
    Settings(**tomllib.loads(settings))
    (tmp_path / "own.toml").write_text(catalogue)
    found = load_catalogue(tmp_path / "own.toml")
    assert set(found.all_reduces["a10080gb"]) == {4}
    assert set(found.matrix_products["a10080gb"]) == {"fp16"}
    assert found.node_links("H100")[0][0] == 200e9


def test_the_settings_of_the_page_about_access_start_a_server() -> None:
    server, jwt, certificates = re.findall(r"```toml\n(.*?)```", text_of("guides/security.md"), re.DOTALL)
    check_identity(Settings(**tomllib.loads(server)))
    check_identity(Settings(**tomllib.loads(jwt)))
    found = Settings(**tomllib.loads(certificates))
    check_identity(found)
    assert found.certificates["recorder-7"].prefixes == ("team-a",)


def test_every_role_of_a_rule_is_explained() -> None:
    page = text_of("guides/security.md")
    assert all(f"| `{role}` |" in page for rule in RULES.values() for role in rule.roles)


def test_every_hook_is_documented_with_its_arguments() -> None:
    manager, page = plugin.new_plugin_manager(), plugin_pages()
    hooks = [name for name in dir(manager.hook) if name.startswith("nodewise_")]
    assert len(hooks) == 5
    for name in hooks:
        spec = getattr(manager.hook, name).spec
        assert f"`{name}({', '.join(spec.argnames)})`" in page


PROTOCOLS = [
    plugin.Estimator,
    plugin.LearningEstimator,
    plugin.WarmingEstimator,
    plugin.CovariantModel,
    plugin.Model,
    plugin.ArchitecturesModel,
    plugin.PlanningModel,
    plugin.Policy,
    plugin.TraceReader,
    plugin.Diagnoser,
    plugin.SharingModel,
]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.__name__)
def test_every_protocol_is_documented_with_its_methods(protocol: type) -> None:
    page = plugin_pages()
    methods = {
        name: method
        for name, method in vars(protocol).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }
    assert methods
    for name, method in methods.items():
        arguments = list(inspect.signature(method).parameters)[1:]
        line = next((line for line in page.splitlines() if f"`{name}({', '.join(arguments)})`" in line), "")
        assert f"| `{protocol.__name__}` |" in line, f"{protocol.__name__}.{name}({', '.join(arguments)})"


@pytest.mark.parametrize(
    "record",
    ["EstimatorRecord", "PolicyRecord", "TraceReaderRecord", "DiagnoserRecord", "SharingModelRecord", "Context"],
)
def test_what_plugins_meet_is_named(record: str) -> None:
    assert f"`{record}`" in plugin_pages()


def test_columns_of_predictions_are_described() -> None:
    page = plugin_pages()
    for name in plugin.Predictions.__dataclass_fields__:
        assert f"`{name}`" in page


def anchors(page: Path) -> set[str]:
    """Those of a page's headings, as they are made of them where it is read."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("https:", "mailto:")):
            there = page.parent / target if target else page
            assert there.exists(), target
            assert not anchor or anchor in anchors(there), f"{target}#{anchor}"


def test_every_page_is_in_the_index() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md") if page.parent.name != "adr"]
    for page in pages:
        assert page == "README.md" or f"({page})" in index, page


def test_every_room_is_in_the_architecture() -> None:
    page = text_of("explanation/architecture.md")
    rooms = [
        room
        for folder in ("server/nodewise", "plugins", "clients/cli")
        for room in (ROOT / folder).iterdir()
        if room.is_dir() and any(room.glob("*.py"))
    ]
    assert len(rooms) > 20
    for room in rooms:
        path = room.relative_to(ROOT).as_posix()
        assert f"`{path}`" in page or f"`{room.name}`" in page, path


def names_in(path: Path) -> set[str]:
    """Functions, classes, methods and constants that a file defines."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.AnnAssign | ast.Assign):
            found |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
            found |= {f"{node.name}.{method.name}" for method in methods}
    return found


def test_each_step_of_the_architecture_exists() -> None:
    page = text_of("explanation/architecture.md")
    way, trails = re.split(
        r"^## Trails$", page[page.index("## The way of a Predict") : page.index("## Ingest")], flags=re.MULTILINE
    )
    ways = [way, *trails.split("### ")[1:]]
    assert len(ways) == 6
    for most, text in zip((10, 8, 8, 8, 8, 8), ways, strict=True):
        assert 1 <= len(re.findall(r"^\d+\. ", text, re.MULTILINE)) <= most, text
        for path in re.findall(r"`([\w/]+\.(?:py|proto))`", text):
            assert (ROOT / path).is_file(), path
        for names, path in re.findall(r"((?:`[\w.]+`(?: and )?)+)\s+\(`([\w/]+\.py)`\)", text):
            for name in re.findall(r"`([\w.]+)`", names):
                assert name in names_in(ROOT / path), f"{path} has no {name}"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) < 700


GROUP: Any = typer.main.get_command(app)
CONTEXT: Any = GROUP.make_context("nodewise", ["--help"], resilient_parsing=True)
COMMANDS: dict[str, Any] = {name: GROUP.resolve_command(CONTEXT, [name])[1] for name in list(GROUP.commands)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_options_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"`nodewise ([a-z][a-z-]*)([^`]*)`", text)
    shown = re.findall(r"^(?: {4})?(?:\S+/bin/)?nodewise ([a-z][a-z-]*)(.*)$", "\n".join(fenced(text)), re.MULTILINE)
    for command, rest in [*named, *shown]:
        assert command in COMMANDS, f"nodewise {command}"
        below = getattr(COMMANDS[command], "commands", {}).values()
        parameters = [parameter for each in (COMMANDS[command], *below) for parameter in each.params]
        options = {name for parameter in parameters for name in (*parameter.opts, *parameter.secondary_opts)}
        for option in re.findall(r"(?<=\s)--[a-z][a-z-]*", rest):
            assert option in {*options, "-h", "--help"}, f"nodewise {command} {option}"


def fenced(text: str) -> list[str]:
    """Blocks of code, with fences or indented."""
    return [*re.findall(r"```(?:sh|text)?\n(.*?)```", text, re.DOTALL), *re.findall(r"^ {4}\S.*$", text, re.MULTILINE)]


def test_every_script_of_research_is_told_of_where_it_is_quoted() -> None:
    page = ROOT / "research" / "README.md"
    rows = re.findall(r"^\| (`.+?`) \|.*\| \[.+?\]\((.+?)\) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    told = {script: quoted for scripts, quoted in rows for script in re.findall(r"`(\w+\.py)`", scripts)}
    assert set(told) == {script.name for script in page.parent.glob("*.py")}
    helpers = {"reference_intervals.py", "measurement_designs.py", "simulated_jobs.py", "layer_files.py"}
    for script, quoted in told.items():
        assert script in helpers or script in (page.parent / quoted).read_text(encoding="utf-8"), script


@pytest.mark.parametrize("page", sorted((DOCS / "adr").glob("*.md")), ids=lambda page: page.name)
def test_a_decision_has_its_parts(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.match(rf"# {int(page.name[:4])}\. \S", text)
    for heading in ("## Decision\n", "## Reasons\n"):
        assert heading in text

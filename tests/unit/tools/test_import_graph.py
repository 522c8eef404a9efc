"""Which tests a change touches, and in which order they are run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from import_graph import ImportGraph, fitting, ranked

TREE = {
    "server/house/__init__.py": "",
    "server/house/rpc/__init__.py": "from house.rpc import calls",
    "server/house/rpc/calls.py": "from house import values",
    "server/house/values.py": "",
    "server/house/late.py": "def late():\n    import house.values",
    "plugins/laws/__init__.py": "",
    "plugins/laws/line.py": "",
    "plugins/amdahl/__init__.py": "",
    "plugins/amdahl/plugin.py": "from laws.line import line",
    "research/score_line.py": "from fit_line import fit",
    "research/fit_line.py": "from laws import line",
    "docs/guide.md": "",
    "examples/own/mine.py": "",
    "tests/support/serving.py": "import house.rpc",
    "tests/conftest.py": "import house.late",
    "tests/unit/test_values.py": "from house.values import Value",
    "tests/unit/test_calls.py": "from house.rpc.calls import call",
    "tests/unit/test_line.py": "from laws import line",
    "tests/unit/test_own.py": "import mine",
    "tests/integration/test_scores.py": 'SCRIPT = "score_line.py"',
    "tests/integration/test_command.py": 'COMMAND = "amdahl"',
    "tests/integration/test_service.py": "from serving import serve",
    "tests/integration/test_docs.py": 'PAGES = ROOT / "docs"',
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> ImportGraph:
    root = tmp_path_factory.mktemp("tree")
    for path, text in TREE.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    files = [*TREE, "server/house/gone.py"]
    return ImportGraph.of(root, files, names={"amdahl": "amdahl.plugin"}, folders=["examples/own"])


def touched_by(graph: ImportGraph, changed: Iterable[str]) -> dict[str, int]:
    distances = graph.distances(changed)
    return {Path(path).name: far for path, far in distances.items() if Path(path).name.startswith("test_")}


@pytest.mark.parametrize(
    ("changed", "touched"),
    [
        ("plugins/laws/line.py", {"test_line.py": 1, "test_command.py": 2, "test_scores.py": 3}),
        ("server/house/rpc/calls.py", {"test_calls.py": 1, "test_service.py": 3}),
        ("server/house/rpc/__init__.py", {"test_calls.py": 1, "test_service.py": 2}),
        ("research/fit_line.py", {"test_scores.py": 2}),
        ("research/score_line.py", {"test_scores.py": 1}),
        ("plugins/amdahl/__init__.py", {"test_command.py": 1}),
        ("examples/own/mine.py", {"test_own.py": 1}),
        ("docs/guide.md", {"test_docs.py": 1}),
        ("tests/unit/test_line.py", {"test_line.py": 0}),
        ("Makefile", {}),
    ],
)
def test_what_a_change_touches(graph: ImportGraph, changed: str, touched: dict[str, int]) -> None:
    assert touched_by(graph, [changed]) == touched


def test_a_conftest_stands_between_what_it_imports_and_all_tests_below_it(graph: ImportGraph) -> None:
    distances = touched_by(graph, ["server/house/values.py"])
    assert distances["test_values.py"] == 1
    assert distances["test_calls.py"] == 2
    # By way of the conftest, which imports what imports it, within a function.
    assert distances["test_docs.py"] == 3
    assert len(distances) == 8


def test_the_nearest_of_several_changes_counts(graph: ImportGraph) -> None:
    distances = graph.distances(["plugins/laws/line.py", "research/score_line.py"])
    assert distances["tests/integration/test_scores.py"] == 1


def test_what_imports_a_file_that_is_gone_is_touched(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_gone.py").write_text("from house.gone import it")
    graph = ImportGraph.of(tmp_path, ["server/house/gone.py", "tests/test_gone.py"])
    assert graph.distances(["server/house/gone.py"])["tests/test_gone.py"] == 1


def test_relative_imports_are_followed(tmp_path: Path) -> None:
    for path, text in {"plugins/laws/a.py": "from .b import x", "plugins/laws/b.py": ""}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    graph = ImportGraph.of(tmp_path, ["plugins/laws/a.py", "plugins/laws/b.py"])
    assert graph.distances(["plugins/laws/b.py"]) == {"plugins/laws/b.py": 0, "plugins/laws/a.py": 1}


def test_near_tests_come_first_and_quick_ones_among_equally_near() -> None:
    distances = {f"tests/unit/test_{name}.py": 1 for name in ("b", "a", "slow")}
    distances |= {"tests/chaos/test_chaos.py": 1, "tests/unit/test_self.py": 0, "tests/unit/test_far.py": 4}
    distances |= {"server/house/values.py": 0, "tests/support/serving.py": 1}
    seconds = {"tests/unit/test_slow.py": 30.0, "tests/unit/test_far.py": 0.1, "tests/unit/test_self.py": 9.0}
    order = ranked(distances, seconds)
    assert [Path(path).stem[5:] for path in order] == ["self", "a", "b", "chaos", "slow", "far"]


def test_a_test_that_is_too_long_leaves_its_place_to_the_next() -> None:
    first, long, new, second = (f"tests/unit/test_{name}.py" for name in ("first", "long", "new", "second"))
    seconds = {long: 60.0, first: 4.0, second: 4.0}
    assert fitting([first, long, new, second], seconds, 9.9) == [first, new]
    assert fitting([first, long, new, second], seconds, 10.0) == [first, new, second]
    assert fitting([long], seconds, 60.0) == [long]
    assert fitting([new], seconds, 0.0) == []

"""Names that lint refuses."""

from __future__ import annotations

import pytest

from check_names import main, problems_of


@pytest.mark.parametrize("name", ["_told", "Reloaded", "found", "seen", "matched"])
def test_a_bare_participle_is_refused(name: str) -> None:
    (problem,) = problems_of("server/a.py", f"\nclass A:\n    def {name}(self): ...\n")
    assert problem.startswith(f"server/a.py:3: {name}: is a bare participle")


@pytest.mark.parametrize(
    "name", ["read", "split", "embed", "seed", "is_found", "find", "median", "reading", "from_cache"]
)
def test_verbs_nouns_and_longer_names_pass(name: str) -> None:
    assert list(problems_of("server/a.py", f"def {name}(): ...\nasync def _{name}(): ...\n")) == []


def test_metaphors_and_names_of_modules_are_refused_too() -> None:
    problems = list(problems_of("server/kept.py", "class Rooms: ...\n"))
    assert [problem.split(": ")[:2] for problem in problems] == [
        ["server/kept.py:1", "kept"],
        ["server/kept.py:1", "Rooms"],
    ]


def test_methods_that_others_implement_stay() -> None:
    assert list(problems_of("plugins/a.py", "class Context:\n    def advanced(self): ...\n")) == []


def test_the_packages_that_are_done_have_clear_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0, capsys.readouterr().out

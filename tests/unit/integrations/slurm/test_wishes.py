"""What owners of jobs may want, and what they are told where it cannot be read."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from nodewise_integrations.slurm.wishes import Wishes, WrongWishError, read_wishes

PAGE = Path(__file__).resolve().parents[4] / "docs" / "integrations" / "slurm.md"


def test_the_command_line_stands_above_the_script() -> None:
    script = "#!/bin/sh\n#NODEWISE --profile=a --nodes=1-4 --steps=1_000\n#NODEWISE --gpus-per-node=8 --device=A100\n"
    found = read_wishes(script, ["nodes=pow2:1-8", "explain"])
    assert found == Wishes(
        profile="a", nodes=(1, 2, 4, 8), steps=1000.0, gpus_per_node="8", device="A100", explain=True
    )
    assert found.columns == {"devices": "A100"}
    assert found.works
    assert read_wishes("", []) == Wishes()


@pytest.mark.parametrize(
    ("wish", "right"),
    [
        ("nods=1-4", "--nodewise-nods: is not a known option; the options are profile, nodes, objective"),
        ("gpus_per_node=4", "--nodewise-gpus_per_node: is not a known option"),
        ("nodes", "--nodewise-nodes: must be given a value"),
        ("nodes=4-1", "--nodewise-nodes: '4-1': 4-1 names no numbers"),
        ("objective=best", "must be one of knee, highest-throughput, least-time, fewest-devices, found 'best'"),
        ("share=0", "--nodewise-share: must be a number above 0 and at most 1, found '0'"),
        ("confidence=nan", "--nodewise-confidence: must be a number above 0.5 and at most 0.9999, found 'nan'"),
        ("steps=inf", "--nodewise-steps: must be a number above 0, found 'inf'"),
        ("margin=-1", "--nodewise-margin: must be a number at least 0 and at most 100"),
        ("gpus-per-node=all", "--nodewise-gpus-per-node: must be a whole number from 1, found 'all'"),
        ("pattern=(", "--nodewise-pattern: must be a regular expression"),
        ("pattern=x", "--nodewise-pattern: must have one group, the steps per second"),
        ("explain=1", "--nodewise-explain: takes no value"),
    ],
)
def test_a_wrong_wish_says_what_would_be_right(wish: str, right: str) -> None:
    with pytest.raises(WrongWishError) as caught:
        read_wishes("", [wish])
    assert right in str(caught.value)


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("nodes=4", "#NODEWISE: must be --name=value, found 'nodes=4'"),
        ("--explain", "#NODEWISE --explain: takes no value, and is only allowed on the command line"),
        ("--share=3", "#NODEWISE --share: must be a number"),
        ("--steps=1 --samples=2", "--nodewise-steps, --nodewise-samples: state the same work"),
        (
            "--nodes=1-4 --objective=least-time",
            "--nodewise-samples: must be given with --nodewise-objective=least-time",
        ),
        (
            "--nodes=1-4 --samples=9 --objective=fewest-devices",
            "--nodewise-deadline-s: must be given with --nodewise-objective=fewest-devices",
        ),
        ("--pattern='x", "line 1: #NODEWISE: No closing quotation"),
    ],
)
def test_a_wrong_line_is_named(line: str, right: str) -> None:
    with pytest.raises(WrongWishError) as caught:
        read_wishes(f"#NODEWISE {line}\n", [])
    assert right in str(caught.value)


def test_every_wish_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for field in fields(Wishes):
        name = field.name.replace("_", "-")
        assert f"--{name}" in page or f"--nodewise-{name}" in page, name

"""The simulation that shows what suggestions are worth, on a published table, and the designs beside them."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parameter_server_tables import table_path

RESEARCH = Path(__file__).resolve().parents[2] / "research"
DESIGNS = runpy.run_path(str(RESEARCH / "measurement_designs.py"))
Row: Any = DESIGNS["Row"]
LADDER = [Row(nodes, workers, 64 // workers) for nodes, workers in ((16, 64), (4, 16), (1, 4), (2, 8), (3, 12), (2, 4))]


def test_doubling_goes_upwards_with_full_nodes_first() -> None:
    order = [LADDER[place] for place in DESIGNS["doubling"](LADDER)]
    assert [(row.nodes, row.workers) for row in order] == [(1, 4), (2, 8), (4, 16), (16, 64), (3, 12), (2, 4)]


def test_optimal_designs_begin_at_the_far_corner() -> None:
    for criterion in DESIGNS["CRITERIA"]:
        order = DESIGNS["optimal"](LADDER, [Row(1, 1, 64), Row(1, 4, 16)], criterion)
        # What a node tells, many tell better; for each node of theirs, few do.
        assert (LADDER[order[0]].nodes == 16) == (criterion != "D-optimal/node")


@given(
    st.lists(st.builds(Row, st.integers(1, 64), st.integers(1, 512), st.integers(0, 4096)), unique=True, max_size=12),
    st.sampled_from(DESIGNS["CRITERIA"]),
)
def test_every_design_runs_everything_once(rows: list[Any], criterion: str) -> None:
    everything = list(range(len(rows)))
    assert sorted(DESIGNS["random_order"](rows, 3)) == everything
    assert sorted(DESIGNS["doubling"](rows)) == everything
    if rows:
        assert sorted(DESIGNS["optimal"](rows, [Row(1, 1, 8)], criterion)) == everything


@pytest.fixture(scope="module")
def scores() -> Any:
    """Scores of the A100 table."""
    command = [sys.executable, RESEARCH / "score_suggestions.py", table_path("elasticflow_a100_8_to_64.csv"), "--json"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    return json.loads(done.stdout)


@pytest.mark.data
@pytest.mark.parametrize("end", ["first", "lasting"])
def test_what_is_suggested_costs_less_than_fixed_designs_on_most_jobs(scores: Any, end: str) -> None:
    """Over all designs: five of the seven jobs are decided right from the start, whatever is measured."""
    against = [scores[end]["against"][design] for design in ("doubling", *DESIGNS["CRITERIA"], "random")]
    won, lost = (sum(each[name] for each in against) for name in ("jobs_won", "jobs_lost"))
    assert won >= 2 * lost + 1
    # To be within 3 % once may be luck, which costs little; to stay there is not.
    assert end == "first" or all(each["ratio"] < 1.0 for each in against)


@pytest.mark.data
def test_the_service_says_when_it_is_enough(scores: Any) -> None:
    start, enough, settled = (scores["stops"][name] for name in ("start", "enough", "settled"))
    assert enough["regret"] <= start["regret"]
    assert settled["within"] == 1.0
    assert settled["node_s"] < scores["stops"]["everything"]["node_s"]

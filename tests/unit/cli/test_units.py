"""Throughputs in the units that people have them in, columns by the names that people give them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.aliases import ALIASES, AMBIGUOUS, column_named
from nodewise_cli.inputs.columns import RATES, READ
from nodewise_cli.inputs.table_content import profile_content
from nodewise_cli.inputs.tables import Table, read_table

PAGE = Path(__file__).parents[3] / "docs/reference/profiles.md"


def table(folder: Path, *rows: dict[str, str], without_batch: bool = False, predicted: bool = False) -> Table:
    path = folder / "table.csv"
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return read_table(path, without_batch=without_batch, predicted=predicted)


def row(**cells: str) -> dict[str, str]:
    return {"job": "a", "device": "A100", "nodes": "2", "workers": "16"} | cells


def rate(folder: Path, **cells: str) -> float:
    """Steps per second of a row."""
    (found,) = table(folder, row(**cells)).columns["steps_per_s"]
    assert isinstance(found, float)
    return found


@pytest.mark.parametrize(
    ("cells", "steps_per_s"),
    [
        ({"samples_per_s": "38100", "batch_per_worker": "256"}, 38100 / 4096),
        ({"images_per_s": "38100", "global_batch": "4096"}, 38100 / 4096),
        ({"img/s": "38100", "batch_per_worker": "64", "accumulation": "4"}, 38100 / 4096),
        ({"samples/sec": "38100", "per_gpu_batch_size": "256", "backup_workers": "2", "sync": "sync"}, 38100 / 3584),
        ({"samples_per_s": "100", "batch_per_worker": "4", "tensor_parallel": "4"}, 100 / 16),
        ({"samples_per_s": "100", "micro_batch_size": "2", "tp": "2", "pp": "4", "grad_accum": "8"}, 100 / 32),
        ({"samples_per_s": "100", "batch_per_worker": "0.5"}, 100 / 8),
        ({"tokens_per_s": "65536", "batch_per_worker": "2", "seq_len": "1024"}, 2.0),
        ({"it_per_s": "2.5"}, 2.5),
        ({"it/s": "2.5"}, 2.5),
        ({"step_s": "0.4"}, 2.5),
        ({"Sec/Step": "0.4"}, 2.5),
        ({"ms_per_step": "400"}, 2.5),
        ({"elapsed time per iteration (ms)": "400"}, 2.5),
        ({"samples_per_s": "64", "batch_per_worker": "32", "sync": "async"}, 2.0),
        ({"samples_per_s": "64", "global_batch": "512", "sync": "async"}, 2.0),
        ({"step_s": "8", "sync": "async"}, 2.0),
        ({"it_per_s": "2", "sync": "async"}, 2.0),
    ],
)
def test_a_throughput_becomes_steps_per_second(tmp_path: Path, cells: dict[str, str], steps_per_s: float) -> None:
    assert rate(tmp_path, **cells) == pytest.approx(steps_per_s)


def test_the_same_numbers_in_every_unit_are_one_profile(tmp_path: Path) -> None:
    told = [
        {"steps_per_s": "9.5"},
        {"samples_per_s": "38912"},
        {"images_per_s": "38912"},
        {"it_per_s": "9.5"},
        {"step_s": str(1 / 9.5)},
        {"ms_per_step": str(1e3 / 9.5)},
    ]
    profiles = [profile_content(table(tmp_path, row(batch_per_worker="256", **cells)), "a") for cells in told]
    for profile in profiles:
        assert profile.observations is not None
        assert profile.observations.steps_per_second == pytest.approx((9.5,))
        assert profile.observations.configurations == profiles[0].observations.configurations  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (
            {"samples_per_s": "38100"},
            "column samples_per_s: cannot be converted to steps without the batch: state batch_per_w",
        ),
        ({"img/s": "38100"}, "column img/s: cannot be converted to steps without the batch"),
        (
            {"tokens_per_s": "1e6", "batch_per_worker": "2"},
            "column tokens_per_s: cannot be converted to samples without thei",
        ),
        (
            {"samples_per_s": "38100", "batch_per_worker": "256", "step_s": "0.5"},
            "column step_s: must agree with samples_per_s (38100, which is 9.302 steps/s), found 0.5, which is 2 ",
        ),
        ({"step_s": "0"}, "column step_s: must be a finite number above 0 (s), found '0'"),
        ({"ms/step": "-1"}, "column ms/step: must be a finite number above 0 (ms), found '-1'"),
        ({"samples_per_s": "nan", "batch_size": "2"}, "column samples_per_s: must be a finite number above 0"),
        (
            {"gpus_per_node": "4", "steps_per_s": "1"},
            "column nodes: must be 4 for 16 workers with gpus_per_node 4",
        ),
    ],
)
def test_what_cannot_be_told(tmp_path: Path, cells: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(f":2: {said}")):
        table(tmp_path, row(**cells))


def test_two_statements_that_agree_as_printed(tmp_path: Path) -> None:
    assert rate(tmp_path, samples_per_s="38100", batch_per_worker="256", step_s="0.108") == pytest.approx(9.3018, 1e-4)


@pytest.mark.parametrize(
    ("cells", "counts"),
    [
        ({"nodes": "2", "gpus_per_node": "8"}, (2, 16)),
        ({"gpus": "16", "gpus_per_node": "8"}, (2, 16)),
        ({"world_size": "4", "nproc_per_node": "8"}, (1, 4)),
        ({"num_nodes": "2", "n_gpus": "12", "gpus_per_node": "8"}, (2, 12)),
    ],
)
def test_nodes_and_workers_follow_from_the_gpus_of_a_node(
    tmp_path: Path, cells: dict[str, str], counts: tuple[int, int]
) -> None:
    found = table(tmp_path, {"model": "a", "gpu_type": "A100", "steps_per_s": "1"} | cells)
    assert (found.columns["nodes"][0], found.columns["workers"][0]) == counts


def test_gpus_that_fill_no_whole_nodes(tmp_path: Path) -> None:
    cells = {"job": "a", "device": "A100", "steps_per_s": "1", "gpus": "12", "gpus_per_node": "8"}
    with pytest.raises(InputError, match=r"column nodes: must be given, because workers \(12\) is not a multiple"):
        table(tmp_path, cells)


def test_a_number_of_gpus_is_no_device(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="column gpu: must name the accelerator, such as A100"):
        table(tmp_path, {"job": "a", "gpu": "8", "nodes": "1", "workers": "8", "steps_per_s": "1"})


@pytest.mark.parametrize("name", sorted(alias for aliases in ALIASES.values() for alias in aliases))
def test_no_alias_is_a_column_itself(name: str) -> None:
    assert name not in READ
    assert name not in AMBIGUOUS
    assert column_named(name, READ) in ALIASES


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("images_per_sec", "images_per_s"),
        ("imgs_per_sec", "images_per_s"),
        ("img/s", "images_per_s"),
        ("Images/Second", "images_per_s"),
        ("samples/sec", "samples_per_s"),
        ("Tokens/s", "tokens_per_s"),
        ("s/it", "step_s"),
        ("step/s", "steps_per_s"),
        ("Step Time (ms)", "ms_per_step"),
        ("Num GPUs", "workers"),
        ("batch_size", "batch_per_worker"),
    ],
)
def test_names_as_people_write_them(name: str, column: str) -> None:
    assert column_named(name, READ) == column


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("throughput", "has no unit: name it samples_per_s, images_per_s, tokens_per_s, it_per_s"),
        ("step_time", "has no unit: name it step_s (seconds) or ms_per_step (milliseconds)"),
        ("tokens/s/gpu", "is the rate of one worker: multiply it by the number of workers, and name it tokens_per_s"),
        (
            "train_batch_size",
            "may be the batch of one worker or of all workers: name it batch_per_worker or global_batch",
        ),
        ("sampels_per_s", "did you mean samples_per_s?"),
        ("stps_per_s", "did you mean steps_per_s?"),
        ("frames_per_s", "columns of throughput and step time are samples_per_s"),
        ("queries_per_sec", "columns of throughput and step time are samples_per_s"),
        ("worker_step_s", "columns of throughput and step time are samples_per_s"),
    ],
)
def test_a_near_name_of_another_unit_is_never_proposed(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"unknown column {name!r} ({said}")):
        table(tmp_path, row(**{name: "1"}))


def test_a_job_without_batch_is_told_in_samples_alone(tmp_path: Path) -> None:
    rows = [row(nodes=str(nodes), workers=str(8 * nodes), img_per_sec=str(19000 * nodes)) for nodes in (1, 2)]
    found = table(tmp_path, *rows, without_batch=True)
    assert found.counts == {"a": "samples"}
    batch, rates = found.columns["batch_per_worker"], found.columns["steps_per_s"]
    assert [b * w * r for b, w, r in zip(batch, (8, 16), rates, strict=True)] == pytest.approx([19000, 38000])
    assert len(set(batch)) == 1


@pytest.mark.parametrize("fact", [{"parameter_bytes": "1e8"}, {"compute_s": "0.1"}])
def test_facts_of_a_step_need_the_batch(tmp_path: Path, fact: dict[str, str]) -> None:
    with pytest.raises(InputError, match="without the batch"):
        table(tmp_path, row(samples_per_s="100", **fact), without_batch=True)


def test_no_throughput_is_needed_where_rows_are_to_be_predicted(tmp_path: Path) -> None:
    found = table(tmp_path, row(batch_per_worker="8"), predicted=True)
    assert (found.train, found.columns["steps_per_s"]) == ((False,), (None,))
    with pytest.raises(InputError, match="the required column steps_per_s must be given; or the throughput in another"):
        table(tmp_path, row(batch_per_worker="8"))


def test_every_name_of_a_column_is_documented() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    documented = {name: tuple(re.findall(r"`(\w+)`", aliases)) for name, aliases in rows}
    assert {name: documented.get(name) for name in ALIASES} == ALIASES
    assert all(f"`{name}`" in PAGE.read_text() for name in RATES)

"""Power of devices: the law, its bounds, and its errors on published measurements that it has not seen."""

from __future__ import annotations

import runpy
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodewise.catalogue.loading import load_catalogue
from nodewise.completion.run_energy import (
    MEMORY_BOUND_SHARE,
    OTHER_SHARE,
    TRANSFORMER_SHARE,
    Quantity,
    device_power,
    device_watts,
)

ROOT = Path(__file__).parents[3]
QUICK = settings(derandomize=True, deadline=None, max_examples=50)
limits = st.floats(50.0, 1500.0)
ratios = st.floats(0.0, 1.0)


@pytest.fixture(scope="module")
def research() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "research" / "power.py"))


@QUICK
@given(limits, st.booleans(), ratios, ratios)
def test_power_rises_with_utilisation_from_idle_to_training(
    limit: float, transformer: bool, one: float, other: float
) -> None:
    power = device_power(limit, transformer=transformer)
    assert power is not None
    assert device_watts(power, 0.0) == pytest.approx(power.idle_watts)
    assert device_watts(power, 1.0) == pytest.approx(power.training_watts)
    low, high = sorted((one, other))
    assert device_watts(power, low) <= device_watts(power, high) * (1.0 + 1e-12)
    assert power.training_watts <= limit


def test_the_law_is_that_of_fan_weber_and_barroso() -> None:
    power = device_power(None, transformer=True, idle_watts=100.0, training_watts=300.0)
    assert power is not None
    assert device_watts(power, 0.5) == pytest.approx(100.0 + 200.0 * (1.0 - 0.5**1.4))


def test_stated_power_is_surer_than_a_share_of_the_limit_and_needs_no_limit() -> None:
    stated, share = device_power(None, transformer=False, training_watts=200.0), device_power(250.0, transformer=False)
    assert stated is not None
    assert share is not None
    assert stated.training_watts == 200.0
    assert stated.log_spread < share.log_spread
    assert stated.idle_watts < stated.training_watts
    assert device_power(None, transformer=True, idle_watts=50.0) is None


def test_a_quantity_scales_with_its_interval() -> None:
    quantity = Quantity.lognormal(100.0, 0.1).times(2.0)
    assert quantity.value == 200.0
    assert quantity.lower * quantity.upper == pytest.approx(200.0**2)
    assert quantity.lower < quantity.value < quantity.upper


def test_what_transformers_drew_on_a_device_needs_no_limit_and_is_surer() -> None:
    known = device_power(None, transformer=True, transformer_watts=200.0)
    assert known is not None
    assert known.training_watts == 200.0
    by_limit = device_power(250.0, transformer=True)
    assert by_limit is not None
    assert known.log_spread < by_limit.log_spread


@QUICK
@given(ratios, ratios)
def test_other_networks_draw_more_the_more_arithmetic_bounds_them(one: float, other: float) -> None:
    low, high = (
        device_power(None, transformer=False, transformer_watts=200.0, utilisation=each)
        for each in sorted((one, other))
    )
    assert low is not None
    assert high is not None
    assert low.training_watts <= high.training_watts <= 200.0


def test_transformers_on_a_known_device_are_within_five_percent_on_average(research: dict[str, Any]) -> None:
    transformers = [row for row in research["rows"]() if research["is_transformer"](row)]
    simple = fmean(error for _, error in research["limit_errors"](transformers))
    for name in ("workload", "source"):
        errors = [error for _, error in research["left_out_errors"](transformers, name, research["by_device"])]
        assert fmean(errors) < 0.05
        assert max(errors) < 0.105
        assert fmean(errors) < simple / 3.0


@pytest.mark.parametrize("name", ["device", "workload"])
def test_utilisation_explains_a_part_of_the_power_of_convolutions(name: str, research: dict[str, Any]) -> None:
    table = research["rows"]()
    rows = [row for row in table if row["workload"] in research["FLOPS_PER_EPOCH"]]
    levels = {row["device"]: research["level"](table, row["device"]) for row in rows}
    errors = {
        law: fmean(error for _, error in research["left_out_errors"](rows, name, research[law](levels)))
        for law in ("by_mean_share", "by_utilisation")
    }
    assert errors["by_utilisation"] < 0.8 * errors["by_mean_share"]


def test_one_measured_batch_gives_the_others_within_five_percent_on_average(research: dict[str, Any]) -> None:
    assert fmean(error for _, error in research["own_run_errors"](research["rows"]())) < 0.05


def test_constants_in_use_are_those_of_the_table(research: dict[str, Any]) -> None:
    table, is_transformer = research["rows"](), research["is_transformer"]
    transformers = [row for row in table if is_transformer(row)]
    levels = {row["device"]: research["level"](table, row["device"]) for row in table}
    shares = research["of_workloads"](transformers, research["share"])
    assert median(shares) == pytest.approx(TRANSFORMER_SHARE, abs=0.005)
    others = [row for row in table if not is_transformer(row)]
    ratios = research["of_workloads"](others, lambda row: research["training_watts"](row) / levels[row["device"]])
    assert fmean(ratios) == pytest.approx(OTHER_SHARE, abs=0.005)
    convolutions = [row for row in others if row["workload"] in research["FLOPS_PER_EPOCH"]]
    assert research["memory_bound_share"](convolutions, levels) == pytest.approx(MEMORY_BOUND_SHARE, abs=0.005)


def test_the_catalogue_states_the_levels_of_the_table(research: dict[str, Any]) -> None:
    catalogue, table = load_catalogue(), research["rows"]()
    stated = {name: catalogue.device(name) for name in {row["device"] for row in table} - {"RTX6000"}}
    for name, facts in stated.items():
        assert facts is not None
        assert facts["transformer_watts"] == pytest.approx(research["level"](table, name), abs=0.5)

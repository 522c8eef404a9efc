"""Power of devices: the law, its bounds, and its errors on published measurements that it has not seen."""

from __future__ import annotations

import runpy
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodewise.completion.run_energy import Quantity, device_power, device_watts

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


def test_transformers_on_a_device_that_is_left_out_are_within_ten_percent(research: dict[str, Any]) -> None:
    table, is_transformer = research["rows"](), research["is_transformer"]
    errors = [error for row, error in research["held_out_errors"](table, "device") if is_transformer(row)]
    simple = [error for row, error in research["limit_errors"](table) if is_transformer(row)]
    assert fmean(errors) < 0.05
    assert max(errors) < 0.10
    assert fmean(errors) < fmean(simple) / 3.0


def test_a_source_that_is_left_out_is_within_ten_percent(research: dict[str, Any]) -> None:
    errors = research["held_out_errors"](research["rows"](), "source")
    assert all(error < 0.10 for row, error in errors if row["source"] == "perseus")


def test_one_measured_batch_gives_the_others_within_five_percent_on_average(research: dict[str, Any]) -> None:
    assert fmean(error for _, error in research["own_run_errors"](research["rows"]())) < 0.05


def test_shares_in_use_are_those_of_the_table(research: dict[str, Any]) -> None:
    table, is_transformer = research["rows"](), research["is_transformer"]
    mean_share = research["mean_share"]
    assert mean_share(filter(is_transformer, table)) == pytest.approx(research["TRANSFORMER_SHARE"], abs=0.005)
    others = (row for row in table if not is_transformer(row))
    assert mean_share(others) == pytest.approx(research["OTHER_SHARE"], abs=0.005)

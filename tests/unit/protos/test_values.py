"""Every field of every message goes from values to messages and JSON and back, whatever the contract holds."""

from __future__ import annotations

from dataclasses import MISSING, fields
from datetime import UTC, datetime, timedelta, timezone
from importlib import import_module
from subprocess import run
from sys import executable
from typing import Any

import pytest
from contract_values import contract_files, contract_messages, filled, home_of, variants
from google.protobuf import json_format

import nodewise_values
from nodewise_values import (
    ConfigurationRange,
    Configurations,
    CountRange,
    Freshness,
    Knee,
    ModelOptions,
    Objective,
    Offer,
    PredictRequest,
    Profile,
    ScheduleRequest,
    SyncMode,
    Workload,
    wire,
)
from nodewise_values.wire import InvalidValueError, from_json, from_message, to_json, to_message

MESSAGES = {message.full_name: message for message in contract_messages()}
every_message = pytest.mark.parametrize("name", sorted(MESSAGES))


def fillings(name: str) -> list[tuple[Any, Any]]:
    return [filled(MESSAGES[name], chosen) for chosen in range(variants(MESSAGES[name]))]


@every_message
def test_every_field_of_a_value_is_found_again_in_its_message(name: str) -> None:
    for message, value in fillings(name):
        assert to_message(value) == message
        assert from_message(to_message(value), type(value)) == value


@every_message
def test_every_field_of_a_message_is_found_again_in_its_value(name: str) -> None:
    for message, value in fillings(name):
        assert from_message(message, type(value)) == value
        assert to_message(from_message(message, type(value))) == message


@every_message
def test_json_is_that_of_protobuf_in_both_spellings(name: str) -> None:
    for message, value in fillings(name):
        assert to_json(value) == json_format.MessageToDict(message)
        assert from_json(to_json(value), type(value)) == value
        snake = json_format.MessageToDict(message, preserving_proto_field_name=True)
        assert from_json(snake, type(value)) == value


@every_message
def test_values_have_the_contract_s_fields_in_its_order(name: str) -> None:
    kind = home_of(MESSAGES[name], "nodewise_values")
    assert [each.name for each in fields(kind)] == [field.name for field in MESSAGES[name].fields]
    assert getattr(nodewise_values, kind.__name__) is kind
    assert to_message(kind()) == home_of(MESSAGES[name], "nodewise_protos")()
    assert from_message(to_message(kind()), kind) == kind()
    assert repr(kind()) == f"{kind.__name__}()"


@every_message
def test_a_field_that_the_mapper_leaves_out_is_missed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = home_of(MESSAGES[name], "nodewise_values")
    mapper = wire._mapper(kind)
    for place, field in enumerate(MESSAGES[name].fields):
        message, value = next(each for each in fillings(name) if getattr(each[1], field.name) not in (None, (), {}))
        with monkeypatch.context() as planted:
            kept = list(mapper._fields)
            kept[place] = (field.name, None, lambda _: None)
            planted.setattr(mapper, "_fields", tuple(kept))
            assert to_message(value) != message
        with monkeypatch.context() as planted:
            planted.setitem(mapper._taken, field.number, (field.name, lambda _: None))
            assert from_message(message, kind) != value


def test_enums_are_words_and_unspecified_is_none() -> None:
    for file in contract_files():
        for enum in file.enum_types_by_name.values():
            words = home_of(enum, "nodewise_values")
            prefix = enum.values[0].name.removesuffix("UNSPECIFIED")
            assert [prefix + word.upper() for word in words] == [each.name for each in enum.values if each.number]
    assert SyncMode.ALLREDUCE == "allreduce"
    assert from_message(to_message(ModelOptions()), ModelOptions).freshness is None
    assert from_message(to_message(Configurations(sync_modes=(None, SyncMode.SYNC))), Configurations) == Configurations(
        sync_modes=(None, SyncMode.SYNC)
    )


def test_words_of_a_newer_server_are_kept() -> None:
    pb = import_module("nodewise_protos.v1.configuration_pb2")
    message = pb.Configurations(sync_modes=[1, 77])
    value = from_message(message, Configurations)
    assert value.sync_modes == (SyncMode.ASYNC, "unknown_77")
    assert isinstance(value.sync_modes[1], SyncMode)
    assert to_message(value) == message
    assert to_json(value) == {"syncModes": ["SYNC_MODE_ASYNC", 77]}
    assert from_json(to_json(value), Configurations) == value
    with pytest.raises(ValueError, match="unknown_x"):
        SyncMode("unknown_x")


def test_fields_of_a_newer_server_are_left_out() -> None:
    # Field 1000 of wire type 0, before a field that is known.
    data = b"\xc0\x3e\x01" + to_message(CountRange(first=3)).SerializeToString()
    pb = import_module("nodewise_protos.v1.configuration_pb2")
    assert from_message(pb.CountRange.FromString(data), CountRange) == CountRange(first=3)


def test_columns_may_be_any_sequence_of_the_right_entries() -> None:
    import numpy as np

    expected = to_message(Configurations(nodes=(1, 2), link_bytes_per_second=(1.0, 2.0)))
    assert to_message(Configurations(nodes=[1, 2], link_bytes_per_second=[1, 2.0])) == expected
    assert to_message(Configurations(nodes=range(1, 3), link_bytes_per_second=np.array([1.0, 2.0]))) == expected
    assert to_message(Configurations(nodes=np.array([1, 2]), link_bytes_per_second=(np.float64(1), 2))) == expected


def test_negative_zero_and_stated_defaults_of_optional_fields_are_kept() -> None:
    value = from_message(to_message(Workload(epochs_count=0)), Workload)
    assert value.epochs_count == 0
    assert str(from_message(to_message(Offer(price_per_node_hour=-0.0)), Offer).price_per_node_hour) == "-0.0"


def test_json_may_hold_words_numbers_in_text_and_null() -> None:
    read = from_json(
        {"estimatorVersion": None, "freshness": "cached_only", "seed": "7", "intervalCoverage": 1}, ModelOptions
    )
    assert read == ModelOptions(freshness=Freshness.CACHED_ONLY, seed=7, interval_coverage=1.0)


def test_times_carry_their_zone() -> None:
    east = timezone(timedelta(hours=5))
    noon = datetime(2026, 11, 22, 12, tzinfo=UTC)
    value = ScheduleRequest(now=noon.astimezone(east))
    found = from_message(to_message(value), ScheduleRequest).now
    assert found == noon
    assert found is not None
    assert found.tzinfo is UTC
    assert from_json({"now": "2026-11-22T17:00:00+05:00"}, ScheduleRequest).now == noon
    with pytest.raises(InvalidValueError, match="now: must be a date and time with a time zone"):
        to_message(ScheduleRequest(now=noon.replace(tzinfo=None)))


def test_everything_that_is_wrong_is_named_with_its_path() -> None:
    settings: Any = "none"
    request = PredictRequest(
        configurations=Configurations(nodes=(1, 2**31), device_names=("V100", 3)),  # type: ignore[arg-type]
        ranges=(ConfigurationRange(nodes=CountRange(first=1)), ConfigurationRange(settings=settings)),
        objective=Objective(knee=Knee(share=float("nan")), confidence="high"),  # type: ignore[arg-type]
    )
    with pytest.raises(InvalidValueError) as caught:
        to_message(request)
    assert [(each.field, each.description) for each in caught.value.violations] == [
        ("configurations.nodes[1]", "must be a whole number from -2147483648 to 2147483647, found 2147483648"),
        ("configurations.device_names[1]", "must be text, found 3"),
        ("ranges[1].settings", "must be a ConfigurationSettings, found 'none'"),
        ("objective.knee.share", "must be a finite number, found nan"),
        ("objective.confidence", "must be a finite number, found 'high'"),
    ]


def test_two_of_a_oneof_are_refused() -> None:
    both = ConfigurationRange(nodes=CountRange(first=1), workers=CountRange(first=1))
    message = "workers: must not be given beside nodes: at most one of them may be"
    with pytest.raises(InvalidValueError, match=message):
        to_message(both)
    with pytest.raises(InvalidValueError, match=message):
        from_json({"nodes": {}, "workers": {}}, ConfigurationRange)


def test_names_that_json_must_not_hold_are_named_with_the_nearest() -> None:
    with pytest.raises(InvalidValueError) as caught:
        from_json({"objective": {"leastTime": {"maxNode": 3}}, "option": {}, "ranges": {"nodes": 1}}, PredictRequest)
    assert [(each.field, each.description) for each in caught.value.violations] == [
        ("objective.least_time.maxNode", "is not a field of LeastTime; the nearest is maxNodes"),
        ("option", "is not a field of PredictRequest; the nearest is options"),
        ("ranges", "must be a list, each entry a ConfigurationRange; found {'nodes': 1}"),
    ]
    with pytest.raises(InvalidValueError, match="max_nodes: is given twice, as maxNodes and as max_nodes"):
        from_json({"objective": {"least_time": {"maxNodes": 1, "max_nodes": 2}}}, PredictRequest)


def test_a_wrong_entry_of_an_iterator_is_found_though_it_is_read_once() -> None:
    right: Any = iter((1, 2))
    assert to_message(Configurations(nodes=right)).nodes == [1, 2]
    wrong: Any = iter((1, 2**40))
    with pytest.raises(InvalidValueError, match=r"configurations\.nodes: must be a whole number from"):
        to_message(PredictRequest(configurations=Configurations(nodes=wrong)))


def test_a_message_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match=r"nodewise\.v1\.Knee is no nodewise\.v1\.Objective"):
        from_message(to_message(Knee()), Objective)


def test_values_print_what_they_state_and_the_ends_of_columns() -> None:
    assert repr(Configurations(nodes=tuple(range(1, 65)), sync_modes=(SyncMode.ASYNC,))) == (
        "Configurations(nodes=(1, 2, 3, 4, 5, ... 58 more ..., 64), sync_modes=('async',))"
    )
    assert len(repr(Profile(digest="f" * 1000))) < 120


def test_values_need_neither_protobuf_nor_numpy() -> None:
    modules = [
        f"nodewise_values.{file.name.removeprefix('nodewise/').removesuffix('.proto').replace('/', '.')}"
        for file in contract_files()
    ]
    program = (
        f"import sys, importlib\nfor name in {['nodewise_values.facts', *modules]!r}: importlib.import_module(name)\n"
        "sys.exit(', '.join(name for name in ('google.protobuf', 'grpc', 'numpy') if name in sys.modules) or 0)"
    )
    finished = run([executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


def test_every_field_has_a_default() -> None:
    for message in MESSAGES.values():
        for each in fields(home_of(message, "nodewise_values")):
            assert each.default is not MISSING or each.default_factory is not MISSING

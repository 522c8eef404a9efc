"""One rule for each method of the contract, and every profile that a request names is found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from serving import inline, stored

from nodewise.domain.principal import ANYONE, Principal, Role
from nodewise.rpc import access
from nodewise.rpc.access import NO_ACCESS, PROFILE_ID, RULES, guard_of, names_in
from nodewise.rpc.services import _DESCRIPTORS
from nodewise_protos.v1 import prediction_service_pb2 as pb

METHODS = {method.full_name: method for service in _DESCRIPTORS.values() for method in service.methods}
PREFIX = "name_prefix"
"""Fields of listings, which show what is within the caller's prefixes alone."""


class Anyone:
    epoch = 0

    def known_principal(self, metadata: object) -> Principal:
        return ANYONE

    async def principal(self, context: object) -> Principal:  # as the protocol has it
        return ANYONE


def fields_below(message: Descriptor, above: tuple[str, ...] = ()) -> Iterator[FieldDescriptor]:
    for field in message.fields:
        yield field
        if field.message_type is not None and field.message_type.full_name not in above:
            yield from fields_below(field.message_type, (*above, message.full_name))


def test_every_method_has_a_rule_and_every_rule_a_method() -> None:
    assert RULES.keys() == METHODS.keys()


@pytest.mark.parametrize("name", METHODS)
def test_administration_is_for_admins_of_everything(name: str) -> None:
    rule = RULES[name]
    assert rule.roles
    assert rule.everywhere == ("AdminService" in name)
    assert not rule.everywhere or rule.roles == {Role.ADMIN}


def test_a_method_without_a_rule_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    method = METHODS["nodewise.v1.PredictionService.Predict"]
    monkeypatch.setattr(access, "RULES", {})
    with pytest.raises(KeyError):
        guard_of(method, Anyone())


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_field_that_names_a_profile_is_looked_at(method: MethodDescriptor) -> None:
    """A new field that names a profile in other words must be called profile_id, or say in NO_ACCESS why not."""
    fields = list(fields_below(method.input_type))
    naming = [each for each in fields if each.type == FieldDescriptor.TYPE_STRING and "profile" in each.name]
    assert {each.name for each in naming if each.full_name not in NO_ACCESS} <= {PROFILE_ID}
    # Names are found in lists and messages; maps of messages would have to be learned.
    maps = [each for each in fields if each.message_type is not None and each.message_type.GetOptions().map_entry]
    assert not [each.full_name for each in maps if names_in(each.message_type) is not None]
    with_prefix = [each.name for each in fields if each.name == PREFIX]
    assert bool(with_prefix) == (method.name in {"ListProfiles", "WatchProfiles"})


def test_names_are_found_at_any_depth() -> None:
    find = names_in(pb.StreamPredictRequest.DESCRIPTOR)
    assert find is not None
    jobs = [pb.BatchJob(profile=stored("a/x")), pb.BatchJob(profile=inline()), pb.BatchJob(profile=stored("b/y"))]
    asked = pb.StreamPredictRequest(batch=pb.BatchPredictRequest(jobs=jobs, profile=stored("c/z")))
    assert sorted(find(asked)) == ["a/x", "b/y", "c/z"]
    assert not [*find(pb.StreamPredictRequest(predict=pb.PredictRequest(profile=inline())))]
    assert names_in(pb.ListDevicesRequest.DESCRIPTOR) is None

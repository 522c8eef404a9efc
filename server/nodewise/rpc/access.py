"""Who may call which method: one rule for each of the contract, applied before its behaviour.

A method without a rule stops the start. Profiles that a request names, wherever in it, are found by its descriptor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol

import grpc
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.principal import Principal, Role

__all__ = ["NO_ACCESS", "PROFILE_ID", "RULES", "Guard", "Identity", "Rule", "guard_of", "names_in"]

Context = grpc.aio.ServicerContext[Any, Any]

PROFILE_ID: Final = "profile_id"
"""Fields of requests that name a stored profile are called so."""
NO_ACCESS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "nodewise.v1.SharedDeviceRun.partner_profile_id": "evidence about another job, which need not be stored; "
        "nothing is read under this name",
    }
)
"""Fields of requests that name a profile in other words and touch none, and why."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may call a method.

    Attributes
    ----------
    roles : frozenset of Role
        One of them is needed; ``admin`` always does.
    everywhere : bool
        Whether it is about the whole server, so that whoever is held to some profiles may not.
    each : bool
        Whether its behaviour checks each message of a stream, so that one that is refused ends no other.
    """

    roles: frozenset[Role]
    everywhere: bool = False
    each: bool = False


_READ: Final = Rule(frozenset({Role.READ}))
_INGEST: Final = Rule(frozenset({Role.INGEST}))
_SCHEDULE: Final = Rule(frozenset({Role.SCHEDULE}))
_LOOK: Final = Rule(frozenset({Role.READ, Role.SCHEDULE}))
_DELETE: Final = Rule(frozenset({Role.ADMIN}))
_ADMIN: Final = Rule(frozenset({Role.ADMIN}), everywhere=True)

RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "nodewise.v1.PredictionService.Predict": _READ,
        "nodewise.v1.PredictionService.BatchPredict": _READ,
        "nodewise.v1.PredictionService.StreamPredict": Rule(frozenset({Role.READ}), each=True),
        "nodewise.v1.PredictionService.SuggestMeasurements": _READ,
        "nodewise.v1.PredictionService.ListEstimators": _LOOK,
        "nodewise.v1.PredictionService.ListDevices": _LOOK,
        "nodewise.v1.PredictionService.ListPlugins": _LOOK,
        "nodewise.v1.ProfileService.IngestProfile": _INGEST,
        "nodewise.v1.ProfileService.IngestBatch": _INGEST,
        "nodewise.v1.ProfileService.AppendProfile": _INGEST,
        "nodewise.v1.ProfileService.RetractEvidence": _INGEST,
        "nodewise.v1.ProfileService.GetProfile": _READ,
        "nodewise.v1.ProfileService.ListProfiles": _READ,
        "nodewise.v1.ProfileService.WatchProfiles": _READ,
        "nodewise.v1.ProfileService.ListUsage": _READ,
        "nodewise.v1.ProfileService.DeleteProfile": _DELETE,
        "nodewise.v1.ProfileService.UndeleteProfile": _DELETE,
        "nodewise.v1.ScheduleService.Schedule": _SCHEDULE,
        "nodewise.v1.ScheduleService.ListPolicies": _LOOK,
        "nodewise.v1beta1.SimulationService.Simulate": _SCHEDULE,
        "nodewise.v1beta1.PlanService.Plan": _READ,
        "nodewise.v1beta1.CompletionService.EstimateCompletion": _READ,
        "nodewise.v1beta1.DiagnosisService.Replay": _READ,
        "nodewise.v1beta1.DiagnosisService.Diagnose": _READ,
        "nodewise.v1beta1.DiagnosisService.ReportSteps": _INGEST,
        "nodewise.v1beta1.EvaluationService.Backtest": _READ,
        "nodewise.v1beta1.SharingService.PredictSharing": _READ,
        "nodewise.v1beta1.AdminService.ListGenerations": _ADMIN,
        "nodewise.v1beta1.AdminService.Reload": _ADMIN,
        "nodewise.v1beta1.AdminService.SetCanary": _ADMIN,
        "nodewise.v1beta1.AdminService.Promote": _ADMIN,
        "nodewise.v1beta1.AdminService.Rollback": _ADMIN,
        "nodewise.v1beta1.AdminService.ListPluginStates": _ADMIN,
        "nodewise.v1beta1.AdminService.CreateToken": _ADMIN,
        "nodewise.v1beta1.AdminService.ListTokens": _ADMIN,
        "nodewise.v1beta1.AdminService.RevokeToken": _ADMIN,
        "nodewise.v1beta1.AdminService.ListPriors": _ADMIN,
        "nodewise.v1beta1.AdminService.SetPrior": _ADMIN,
    }
)
"""Of every method of the contract, by its full name."""


class Identity(Protocol):
    """Tells callers apart by what their calls bring."""

    @property
    def epoch(self) -> int:
        """Another number after each change that may have taken somebody's rights away."""

    def known(self, metadata: Iterable[tuple[str, str | bytes]]) -> Principal | None:
        """Who calls with this metadata, where that was found out before; None = it is to be found out."""

    async def principal(self, context: Context) -> Principal:
        """Who calls. Raises NodewiseError: UNAUTHENTICATED, or STORE_UNAVAILABLE while nobody can be told apart."""


Names = Callable[[Any], Iterator[str]]
"""Finds the names of profiles in a message."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Lets callers of a method in.

    Attributes
    ----------
    names : callable or None
        Profiles that a request names; None = it cannot name any.
    """

    method: str
    rule: Rule
    identity: Identity
    names: Names | None

    def known(self, metadata: Iterable[tuple[str, str | bytes]]) -> Principal | None:
        """The caller, where it is known already that he may call the method; None = it is to be found out."""
        principal = self.identity.known(metadata)
        if principal is None or not principal.has(self.rule.roles) or self.rule.everywhere:
            return None
        return principal

    async def admitted(self, context: Context) -> Principal:
        """The caller, who may call the method, whatever about.

        Raises
        ------
        NodewiseError
            UNAUTHENTICATED, PERMISSION_DENIED, STORE_UNAVAILABLE.
        """
        principal = await self.identity.principal(context)
        if not principal.has(self.rule.roles):
            needed = " or ".join(sorted(self.rule.roles | {Role.ADMIN}))
            raise self._denied(principal, f"needs the role {needed}")
        if self.rule.everywhere and not principal.everywhere:
            raise self._denied(principal, "is about the whole server, and the caller is held to some profiles")
        return principal

    def check(self, principal: Principal, message: Message) -> None:
        """Refuse a request that names a profile which is not the caller's, whether there is one or not.

        Raises
        ------
        NodewiseError
            PERMISSION_DENIED.
        """
        if not self.permits(principal, message):
            raise self._denied(principal, "names a profile outside of the caller's prefixes")

    def permits(self, principal: Principal, message: Message) -> bool:
        """Whether all profiles that a request names are the caller's."""
        if self.names is None or principal.everywhere:
            return True
        return all(principal.covers(name) for name in self.names(message))

    def _denied(self, principal: Principal, why: str) -> NodewiseError:
        text = f"{self.method.rpartition('.')[2]} {why}"
        return NodewiseError(Reason.PERMISSION_DENIED, text, {"method": self.method, "subject": principal.subject})


def guard_of(method: MethodDescriptor, identity: Identity) -> Guard:
    """The guard of a method. Raises KeyError if the contract's method has no rule."""
    return Guard(method.full_name, RULES[method.full_name], identity, names_in(method.input_type))


def names_in(message: Descriptor) -> Names | None:
    """What finds the profiles that a message of this type names, at any depth; None = it cannot name any."""
    return _names_in(message, ())


def _names_in(message: Descriptor, above: tuple[str, ...]) -> Names | None:
    if message.full_name in above:
        return None  # what a message holds of its own kind is found from where that is first
    plain: list[tuple[str, bool]] = []
    inner: list[tuple[str, bool, Names]] = []
    for field in message.fields:
        many = bool(field.is_repeated)
        if field.name == PROFILE_ID and field.type == FieldDescriptor.TYPE_STRING:
            plain.append((field.name, many))
        elif field.message_type is not None:
            found = _names_in(field.message_type, (*above, message.full_name))
            if found is not None:
                inner.append((field.name, many, found))
    return _finder(plain, inner) if plain or inner else None


def _finder(plain: list[tuple[str, bool]], inner: list[tuple[str, bool, Names]]) -> Names:
    """Finds names in fields that are names, and in fields that hold them; each with whether it is repeated."""

    def names(value: Any) -> Iterator[str]:
        for name, many in plain:
            held = getattr(value, name)
            yield from held if many else (held,) if held else ()
        for name, many, find in inner:
            if many:
                for each in getattr(value, name):
                    yield from find(each)
            elif value.HasField(name):
                yield from find(getattr(value, name))

    return names

"""One rule for each method of the contract, applied before its behaviour: required roles, and limits of a call.

The server does not start if a method has no rule. The descriptor of a request tells which fields name profiles.
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
from nodewise.rpc.intake import RECEIVED_BYTES

__all__ = ["NO_ACCESS", "PROFILE_ID", "RULES", "Guard", "Identity", "Rule", "guard_of", "names_in"]

Context = grpc.aio.ServicerContext[Any, Any]

PROFILE_ID: Final = "profile_id"
"""Name of the fields of requests that name a stored profile."""
NO_ACCESS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "nodewise.v1.SharedDeviceRun.partner_profile_id": "evidence about another job, which need not be stored; "
        "nothing is read under this name"
    }
)
"""Fields with other names that name a profile but need no access to it, and why."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Which callers may call a method, and how much of the server a call may use.

    Attributes
    ----------
    roles : frozenset of Role
        The caller needs one of these roles; ``admin`` is always enough.
    queue : str
        The admission queue of its calls; empty = they are always admitted.
    open_calls : str
        The quota of open calls of a caller; empty = no quota.
    most_bytes : int
        Largest request.
    everywhere : bool
        Whether it is about the whole server, so that callers with access to some profiles alone may not call it.
    each : bool
        Whether its behaviour checks each message of a stream, so that a refused message does not end the stream.
    """

    roles: frozenset[Role]
    queue: str = ""
    open_calls: str = ""
    most_bytes: int = RECEIVED_BYTES
    everywhere: bool = False
    each: bool = False


_NAMES_BYTES: Final = 64 * 1024
"""Most bytes of a request that has only a few names."""
_READ: Final = frozenset({Role.READ})
_INGEST: Final = frozenset({Role.INGEST})
_SCHEDULE: Final = frozenset({Role.SCHEDULE})
_LOOK: Final = frozenset({Role.READ, Role.SCHEDULE})
_ADMIN: Final = frozenset({Role.ADMIN})
_ADMINISTER: Final = Rule(_ADMIN, most_bytes=_NAMES_BYTES, everywhere=True)

RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "nodewise.v1.PredictionService.Predict": Rule(_READ, "questions"),
        "nodewise.v1.PredictionService.BatchPredict": Rule(_READ, "questions"),
        "nodewise.v1.PredictionService.StreamPredict": Rule(_READ, "questions", "streams_per_caller", each=True),
        "nodewise.v1.PredictionService.SuggestMeasurements": Rule(_READ, "questions"),
        "nodewise.v1.PredictionService.ListEstimators": Rule(_LOOK, most_bytes=_NAMES_BYTES),
        "nodewise.v1.PredictionService.ListDevices": Rule(_LOOK, most_bytes=_NAMES_BYTES),
        "nodewise.v1.PredictionService.ListPlugins": Rule(_LOOK, most_bytes=_NAMES_BYTES),
        "nodewise.v1.ProfileService.IngestProfile": Rule(_INGEST, "ingest", "streams_per_caller"),
        "nodewise.v1.ProfileService.IngestBatch": Rule(_INGEST, "ingest"),
        "nodewise.v1.ProfileService.AppendProfile": Rule(_INGEST, "ingest"),
        "nodewise.v1.ProfileService.RetractEvidence": Rule(_INGEST, "ingest", most_bytes=RECEIVED_BYTES // 16),
        "nodewise.v1.ProfileService.GetProfile": Rule(_READ, "questions", most_bytes=_NAMES_BYTES),
        "nodewise.v1.ProfileService.ListProfiles": Rule(_READ, "questions", most_bytes=_NAMES_BYTES),
        "nodewise.v1.ProfileService.WatchProfiles": Rule(
            _READ, open_calls="streams_per_caller", most_bytes=_NAMES_BYTES
        ),
        "nodewise.v1.ProfileService.ListUsage": Rule(_READ, "questions", most_bytes=_NAMES_BYTES),
        "nodewise.v1.ProfileService.DeleteProfile": Rule(_ADMIN, "ingest", most_bytes=_NAMES_BYTES),
        "nodewise.v1.ProfileService.UndeleteProfile": Rule(_ADMIN, "ingest", most_bytes=_NAMES_BYTES),
        "nodewise.v1.ScheduleService.Schedule": Rule(_SCHEDULE, "questions"),
        "nodewise.v1.ScheduleService.ListPolicies": Rule(_LOOK, most_bytes=_NAMES_BYTES),
        "nodewise.v1beta1.SimulationService.Simulate": Rule(_SCHEDULE, "questions", "long_calls_per_caller"),
        "nodewise.v1beta1.PlanService.Plan": Rule(_READ, "questions", "long_calls_per_caller"),
        "nodewise.v1beta1.CompletionService.EstimateCompletion": Rule(_READ, "questions", "long_calls_per_caller"),
        "nodewise.v1beta1.CompletionService.EstimateRun": Rule(_READ, "questions", "long_calls_per_caller"),
        "nodewise.v1beta1.DiagnosisService.Replay": Rule(_READ, "questions", "long_calls_per_caller"),
        "nodewise.v1beta1.DiagnosisService.Diagnose": Rule(_READ, "questions", "long_calls_per_caller"),
        "nodewise.v1beta1.DiagnosisService.ReportSteps": Rule(_INGEST, "ingest", most_bytes=RECEIVED_BYTES // 16),
        "nodewise.v1beta1.EvaluationService.Backtest": Rule(_READ, "questions", "long_calls_per_caller"),
        "nodewise.v1beta1.SharingService.PredictSharing": Rule(_READ, "questions"),
        "nodewise.v1beta1.AdminService.ListGenerations": _ADMINISTER,
        "nodewise.v1beta1.AdminService.Reload": _ADMINISTER,
        "nodewise.v1beta1.AdminService.SetCanary": _ADMINISTER,
        "nodewise.v1beta1.AdminService.Promote": _ADMINISTER,
        "nodewise.v1beta1.AdminService.Rollback": _ADMINISTER,
        "nodewise.v1beta1.AdminService.ListPluginStates": _ADMINISTER,
        "nodewise.v1beta1.AdminService.CreateToken": _ADMINISTER,
        "nodewise.v1beta1.AdminService.ListTokens": _ADMINISTER,
        "nodewise.v1beta1.AdminService.RevokeToken": _ADMINISTER,
        "nodewise.v1beta1.AdminService.ListPriors": _ADMINISTER,
        "nodewise.v1beta1.AdminService.SetPrior": _ADMINISTER,
    }
)
"""The rule of every method of the contract, by its full name."""


class Identity(Protocol):
    """Identifies callers by the metadata and certificates of their calls."""

    @property
    def epoch(self) -> int:
        """A number that changes when a caller may have lost rights."""

    def known_principal(self, metadata: Iterable[tuple[str, str | bytes]]) -> Principal | None:
        """The cached caller of this metadata; None = ask :meth:`principal`."""

    async def principal(self, context: Context) -> Principal:
        """The caller. Raises NodewiseError: UNAUTHENTICATED, or STORE_UNAVAILABLE while no caller can be identified."""


Names = Callable[[Any], Iterator[str]]
"""Finds the names of profiles in a message."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Checks the access of callers to a method.

    Attributes
    ----------
    names : callable or None
        Profiles that a request names; None = it cannot name any.
    """

    method: str
    rule: Rule
    identity: Identity
    names: Names | None

    def known_principal(self, metadata: Iterable[tuple[str, str | bytes]]) -> Principal | None:
        """The cached caller, if it may call the method; None = ask :meth:`admit`."""
        principal = self.identity.known_principal(metadata)
        if principal is None or not principal.has(self.rule.roles) or self.rule.everywhere:
            return None
        return principal

    async def admit(self, context: Context) -> Principal:
        """The caller, if it may call the method, whatever the profile.

        Raises
        ------
        NodewiseError
            UNAUTHENTICATED, PERMISSION_DENIED, STORE_UNAVAILABLE.
        """
        principal = await self.identity.principal(context)
        if not principal.has(self.rule.roles):
            roles = " or ".join(sorted(self.rule.roles | {Role.ADMIN}))
            raise self._denial(principal, f"needs the role {roles}")
        if self.rule.everywhere and not principal.everywhere:
            raise self._denial(principal, "needs access to all profiles, and the caller has it to some prefixes")
        return principal

    def check(self, principal: Principal, message: Message) -> None:
        """Refuse a request that names a profile outside of the caller's prefixes, whether it exists or not.

        Raises
        ------
        NodewiseError
            PERMISSION_DENIED.
        """
        if not self.permits(principal, message):
            assert self.names is not None
            name = next(name for name in self.names(message) if not principal.covers(name))
            prefixes = ", ".join(principal.prefixes) or "none"
            raise self._denial(
                principal, f"names the profile {name!r}, which is outside of the caller's prefixes ({prefixes})"
            )

    def permits(self, principal: Principal, message: Message) -> bool:
        """Whether the caller has access to all profiles that a request names."""
        if self.names is None or principal.everywhere:
            return True
        return all(principal.covers(name) for name in self.names(message))

    def _denial(self, principal: Principal, why: str) -> NodewiseError:
        text = f"{self.method.rpartition('.')[2]} {why}"
        return NodewiseError(Reason.PERMISSION_DENIED, text, {"method": self.method, "subject": principal.subject})


def guard_of(method: MethodDescriptor, identity: Identity) -> Guard:
    """The guard of a method. Raises KeyError if the contract's method has no rule."""
    return Guard(method.full_name, RULES[method.full_name], identity, names_in(method.input_type))


def names_in(message: Descriptor) -> Names | None:
    """A function that finds the profiles that a message of this type names, at any depth; None = it can name none."""
    return _names_in(message, ())


def _names_in(message: Descriptor, above: tuple[str, ...]) -> Names | None:
    if message.full_name in above:
        return None  # a message within its own type is found from the outer one
    plain: list[tuple[str, bool]] = []
    inner: list[tuple[str, bool, Names]] = []
    for field in message.fields:
        many = bool(field.is_repeated)
        if field.name == PROFILE_ID and field.type == FieldDescriptor.TYPE_STRING:
            plain.append((field.name, many))
        elif field.message_type is not None:
            below = _names_in(field.message_type, (*above, message.full_name))
            if below is not None:
                inner.append((field.name, many, below))
    return _finder(plain, inner) if plain or inner else None


def _finder(plain: list[tuple[str, bool]], inner: list[tuple[str, bool, Names]]) -> Names:
    """A function that finds names in name fields and in message fields; each field has a flag, True = repeated."""

    def names(value: Any) -> Iterator[str]:
        for name, many in plain:
            inner_value = getattr(value, name)
            yield from inner_value if many else (inner_value,) if inner_value else ()
        for name, many, find in inner:
            if many:
                for each in getattr(value, name):
                    yield from find(each)
            elif value.HasField(name):
                yield from find(getattr(value, name))

    return names

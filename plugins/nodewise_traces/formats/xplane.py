"""XPlane files of JAX's and TensorFlow's profiler (``*.xplane.pb``): planes of hosts and devices, lines, events.

Fields are those of ``xplane.proto``: https://github.com/openxla/xla/blob/main/third_party/tsl/tsl/profiler/protobuf.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

from nodewise.plugin import Trace, TraceSource
from nodewise_traces.formats.protobuf import WireError, fields_of, members, signed_integer
from nodewise_traces.formats.xla_lines import Line, Profile, device_of
from nodewise_traces.refusals import unusable_error

__all__ = ["XplaneReader"]

NAME: Final = "xplane"
_HOST: Final = "/host:CPU"
_LONGEST_PLANE_BYTES: Final = 1 << 30
"""A plane is read as a whole, as what its numbers mean stands at its end."""


@dataclass(slots=True)
class _Plane:
    """A host or a device; lines and events are still bytes."""

    name: str = ""
    lines: list[bytes] = field(default_factory=list)
    events: dict[int, str] = field(default_factory=dict)
    stats: dict[int, str] = field(default_factory=dict)


class XplaneReader:
    """Reads the profile of one process."""

    def recognises(self, head: bytes, source: TraceSource) -> float:
        """A message whose first field is a plane with a name that hosts and devices have."""
        del source
        if head[:1] != b"\x0a":
            return 0.0
        return 0.9 if b"/host:" in head[:64] or b"/device:" in head[:64] or b"/host:CPU" in head else 0.0

    def read(self, stream: BinaryIO, source: TraceSource) -> list[Trace]:
        """Read the planes of hosts and devices. See TraceReader."""
        profile = Profile()
        counts = profile.rows.table.counts
        planes = 0
        try:
            for number, message in members(stream, _LONGEST_PLANE_BYTES):
                if number == 1:
                    planes += 1
                    _take_plane(_plane(message), profile)
        except (WireError, struct.error) as error:
            counts["truncated"] += 1
            if not len(profile.rows):
                raise unusable_error(
                    source,
                    f"the stream is not an XPlane file, or only a part of one ({error}); send what jax.profiler.trace "
                    "wrote as plugins/profile/.../*.xplane.pb",
                ) from None
        if not planes:
            raise unusable_error(source, "the stream holds no plane; send what jax.profiler.trace wrote as *.xplane.pb")
        return [profile.trace(source, NAME)]


def _plane(message: bytes) -> _Plane:
    plane = _Plane()
    for number, value in fields_of(message):
        if isinstance(value, int):
            continue
        if number == 2:
            plane.name = _text(value)
        elif number == 3:
            plane.lines.append(value)
        elif number in {4, 5}:
            key, name = _entry(value)
            (plane.events if number == 4 else plane.stats)[key] = name
    return plane


def _entry(message: bytes) -> tuple[int, str]:
    """Key and name of an entry of a map; what a device calls an event is its display name, where it has one."""
    key, name, display_name = 0, "", ""
    for number, value in fields_of(message):
        if number == 1 and isinstance(value, int):
            key = value
        elif number == 2 and isinstance(value, bytes):
            for inner, content in fields_of(value):
                if inner == 2 and isinstance(content, bytes):
                    name = _text(content)
                elif inner == 4 and isinstance(content, bytes):
                    display_name = _text(content)
    return key, display_name or name


def _text(value: bytes) -> str:
    return value.decode("utf-8", errors="replace")


def _take_plane(plane: _Plane, profile: Profile) -> None:
    """Take the events of a plane; those of what is neither the host nor a device (metadata of compilers) are none."""
    device = device_of(plane.name)
    if device < 0 and plane.name != _HOST:
        return
    lines = [(*_line(message, device), message) for message in plane.lines]
    work = profile.lines_of_work(line for line, _, _ in lines)
    for line, begin_ns, message in lines:
        for number, value in fields_of(message):
            if number == 4 and isinstance(value, bytes):
                name, offset_ps, duration_ps, arguments = _event(value, plane)
                if offset_ps < 0:
                    profile.rows.table.counts["dropped_aggregates"] += 1
                    continue
                # Ends are rounded, not durations: events that follow each other must not overlap.
                begin, end = begin_ns + offset_ps // 1000, begin_ns + (offset_ps + duration_ps) // 1000
                profile.take(line, name, begin, end - begin, arguments, works=line in work)


def _line(message: bytes, device: int) -> tuple[Line, int]:
    number = display = begin_ns = 0
    name = ""
    for key, value in fields_of(message):
        if isinstance(value, bytes):
            name = _text(value) if key in {2, 11} and value else name
        elif key == 1:
            number = signed_integer(value)
        elif key == 10:
            display = signed_integer(value)
        elif key == 3:
            begin_ns = signed_integer(value)
    return Line(device, display or number, name), begin_ns


def _event(message: bytes, plane: _Plane) -> tuple[str, int, int, Mapping[str, Any]]:
    """Name, offset in its line (ps; -1 = a count of many), duration (ps), arguments."""
    metadata = offset = duration = 0
    arguments: dict[str, Any] = {}
    for number, value in fields_of(message):
        if isinstance(value, bytes):
            if number == 4:
                key, content = _stat(value, plane)
                arguments[key] = content
        elif number == 1:
            metadata = value
        elif number == 2:
            offset = signed_integer(value)
        elif number == 5:
            offset = -1
        elif number == 3:
            duration = signed_integer(value)
    return plane.events.get(metadata, ""), offset, duration, arguments


def _stat(message: bytes, plane: _Plane) -> tuple[str, Any]:
    key = ""
    content: Any = None
    for number, value in fields_of(message):
        if isinstance(value, bytes):
            if number == 5:
                content = _text(value)
        elif number == 1:
            key = plane.stats.get(value, "")
        elif number == 7:
            content = plane.stats.get(value, "")
        elif number in {3, 4}:
            content = signed_integer(value)
    return key, content

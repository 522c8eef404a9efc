"""Messages of one method between JSON and the wire, with what is known of both kept for who asks alike."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.descriptor import Descriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from nodewise.ports.cache import CacheSpace, LruCache
from nodewise.rpc.http.json_codec import json_of, message_of, parse_json
from nodewise.rpc.intake import LARGE_BYTES, Large
from nodewise.rpc.routes import MethodRoute

__all__ = ["Translator", "translators"]

ASIDE_BYTES: Final = 128 * 1024
"""From here on a message is translated in a thread: that may take longer than others should wait."""
_KEPT_BYTES: Final = 64 * 1024
_ENTRY_BYTES: Final = 256
"""Of a kept entry besides its bytes."""


@dataclass(slots=True, eq=False)
class Translator:
    """Of one method.

    Attributes
    ----------
    route : MethodRoute
        Its ways in.
    method : MethodDescriptor
        As the contract has it.
    request, reply : type
        Classes of its requests and replies.
    kept : LruCache or None
        Bodies and replies that were translated; None = each is translated anew.
    """

    route: MethodRoute
    method: MethodDescriptor
    request: type[Message]
    reply: type[Message]
    kept: LruCache[tuple[bool, bytes], bytes] | None = field(default=None)

    @property
    def most_bytes(self) -> int:
        """Largest request."""
        return self.route.method.intake.most_bytes

    async def request_of(self, body: bytes, *, strict: bool) -> bytes:
        """A request's bytes on the wire, of JSON. Raises NodewiseError.

        Parameters
        ----------
        strict : bool
            Refuse names that the request does not have, or leave them out.
        """
        kept = None if strict else self.kept
        if kept is not None and (known := kept.get((True, body))) is not None:
            return known
        made = await self.made(
            body,
            lambda data: message_of(parse_json(data, self.request), self.request, strict=strict).SerializeToString(),
        )
        if kept is not None and len(body) <= _KEPT_BYTES:
            kept.put((True, body), made, len(body) + len(made) + _ENTRY_BYTES)
        return made

    async def made(self, body: bytes, make: Callable[[bytes], bytes]) -> bytes:
        """A request's bytes, made of a body that counts among the bytes in flight meanwhile. Raises NodewiseError."""
        if len(body) <= LARGE_BYTES:
            return make(body)
        with self.route.method.intake.holding(Large(body)):
            return await asyncio.to_thread(make, body) if len(body) > ASIDE_BYTES else make(body)

    async def json_of(self, reply: bytes) -> bytes:
        """A reply as JSON."""
        kept = self.kept
        if kept is not None and (known := kept.get((False, reply))) is not None:
            return known
        written = await asyncio.to_thread(self._json_of, reply) if len(reply) > ASIDE_BYTES else self._json_of(reply)
        if kept is not None and len(reply) <= _KEPT_BYTES:
            kept.put((False, reply), written, len(reply) + len(written) + _ENTRY_BYTES)
        return written

    def _json_of(self, reply: bytes) -> bytes:
        return json_of(self.reply.FromString(reply))


def translators(
    routes: Mapping[str, MethodRoute], methods: Mapping[str, MethodDescriptor], space: CacheSpace
) -> dict[str, Translator]:
    """Of every method, by its path.

    Parameters
    ----------
    routes, methods : mapping of str
        By ``/package.Service/Method``.
    space : CacheSpace
        Has room for what is kept.
    """
    found = {}
    for path, route in routes.items():
        method = methods[path]
        found[path] = Translator(
            route=route,
            method=method,
            request=_class_of(method.input_type),
            reply=_class_of(method.output_type),
            # What is asked again and again is known by its bytes, so that asking in JSON finds it as well.
            kept=LruCache(space) if route.method.known is not None and not method.client_streaming else None,
        )
    return found


def _class_of(descriptor: Descriptor) -> type[Message]:
    return GetMessageClass(descriptor)

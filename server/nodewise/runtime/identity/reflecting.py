"""gRPC server reflection for authenticated callers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from nodewise.domain.errors import NodewiseError
from nodewise.rpc.access import Identity
from nodewise.rpc.calls import request_id
from nodewise.rpc.handlers import abort

__all__ = ["offer_reflection"]

_PATH: Final = f"/{reflection.SERVICE_NAME}/ServerReflectionInfo"


def offer_reflection(services: Sequence[str], server: grpc.aio.Server, identity: Identity | None) -> None:
    """Add gRPC's reflection service to a server.

    Parameters
    ----------
    services : sequence of str
        Full names of services besides reflection itself.
    identity : Identity or None
        Authenticates callers; None = every caller is answered.
    """
    names = (*services, reflection.SERVICE_NAME)
    if identity is None:
        reflection.enable_server_reflection(names, server)
        return
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(_Reflection(names, identity), server)


class _Reflection(reflection.aio.ReflectionServicer):  # type: ignore[misc]  # grpcio-reflection has no types
    """The standard reflection service, which first authenticates its caller."""

    def __init__(self, names: Sequence[str], identity: Identity) -> None:
        super().__init__(names)
        self._identity = identity

    async def ServerReflectionInfo(  # noqa: N802  # as the contract has it
        self, request_iterator: AsyncIterator[Any], context: Any
    ) -> AsyncIterator[Any]:
        """As the contract says."""
        try:
            await self._identity.principal(context)
        except NodewiseError as error:
            await abort(context, _PATH, request_id(context), error)
        async for reply in super().ServerReflectionInfo(request_iterator, context):
            yield reply

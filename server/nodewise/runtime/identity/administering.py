"""The token methods of AdminService."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.domain.principal import Role
from nodewise.mapper.mapping import timestamp
from nodewise.mapper.reading import Reader
from nodewise.profiles.tokens import StoredToken, TokenLedger
from nodewise.rpc.calls import Call, run_in
from nodewise.rpc.paging import page
from nodewise.runtime.identity.callers import Callers
from nodewise.runtime.identity.tokens import new_token
from nodewise_protos.v1beta1 import admin_service_pb2 as pb

__all__ = ["TokenAdministration", "refused_tokens", "write_token"]

_ROLES: Final = MappingProxyType({pb.CallerRole.Value(f"CALLER_ROLE_{role.name}"): role for role in Role})
LIFETIME_S: Final = 90 * 86_400.0
"""Of a token whose maker says nothing of it: a season, so that a forgotten one ends by itself."""


@dataclass(slots=True, eq=False)
class TokenAdministration:
    """Token methods of AdminService.

    Attributes
    ----------
    ledger : TokenLedger
        Store of the tokens.
    callers : Callers
        Informed of each change.
    """

    ledger: TokenLedger
    callers: Callers

    async def create_token(self, request: pb.CreateTokenRequest, call: Call) -> pb.CreateTokenResponse:
        """Create a token. Only this reply contains its text."""
        reader = Reader()
        for index, number in enumerate(request.roles):
            if number not in _ROLES:
                reader.wrong(f"roles[{index}]", "must be a role, found CALLER_ROLE_UNSPECIFIED or an unknown one")
        if not request.roles:
            reader.wrong("roles", f"must name at least one of {', '.join(Role)}")
        if not request.prefixes:
            reader.wrong("prefixes", "must hold prefixes of profile ids, such as team-a/, or * for all profiles")
        life_s = request.lifetime_seconds if request.HasField("lifetime_seconds") else LIFETIME_S
        if not 0 < life_s < math.inf:
            reader.wrong("lifetime_seconds", f"must be above 0, found {life_s}")
        reader.finish()
        text, token = new_token(
            request.description, [_ROLES[number] for number in request.roles], request.prefixes, life_s
        )
        await run_in(None, self.ledger.add, token)
        await self.callers.look()
        return pb.CreateTokenResponse(token=write_token(token), bearer_token=text)

    async def list_tokens(self, request: pb.ListTokensRequest, call: Call) -> pb.ListTokensResponse:
        """List tokens, without their texts."""
        _, tokens = await run_in(None, self.ledger.all)
        now_s = time.time()
        by_key = {_key(token): token for token in tokens if request.show_ended or not token.has_ended(now_s)}
        keys, next_token = page(sorted(by_key), request)
        return pb.ListTokensResponse(tokens=[write_token(by_key[key]) for key in keys], next_page_token=next_token)

    async def revoke_token(self, request: pb.RevokeTokenRequest, call: Call) -> pb.RevokeTokenResponse:
        """Revoke a token."""
        if not request.token_id:
            raise invalid_field("token_id", "must name a token")
        token = await run_in(None, self.ledger.revoke, request.token_id)
        await self.callers.look()
        return pb.RevokeTokenResponse(token=write_token(token))


def refused_tokens() -> dict[str, Any]:
    """Methods that refuse, for servers that require no tokens: any client could create a token, and use it later."""

    async def refuse(_request: Any, _call: Call) -> Any:
        message = "AdminService makes tokens only if the setting authentication includes tokens; use --store"
        raise NodewiseError(Reason.PERMISSION_DENIED, message)

    return {"create_token": refuse, "list_tokens": refuse, "revoke_token": refuse}


def write_token(token: StoredToken) -> pb.Token:
    """Write a token as a message, without its secret."""
    return pb.Token(
        token_id=token.token_id,
        description=token.description,
        roles=[f"CALLER_ROLE_{role.name}" for role in token.roles],
        prefixes=[] if "" in token.prefixes else token.prefixes,
        create_time=timestamp(token.create_time_s),
        expire_time=timestamp(_finite(token.expire_time_s)),
        revoke_time=timestamp(_finite(token.revoke_time_s)),
    )


def _finite(time_s: float) -> float:
    """Return a time in the mapper's form: 0 = never."""
    return time_s if math.isfinite(time_s) else 0.0


def _key(token: StoredToken) -> str:
    """Return the sort key of a list: the time as text, then the id."""
    return f"{int(token.create_time_s * 1e6):020d} {token.token_id}"

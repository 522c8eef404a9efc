"""What is known of the caller of a call over HTTP, also once the connection is gone."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from multidict import CIMultiDict

from nodewise.rpc.http.answering import HttpContext


@pytest.mark.parametrize(
    ("peername", "told"),
    [(("192.0.2.1", 4242), "ipv4:192.0.2.1:4242"), (("2001:db8::1", 4242, 0, 0), "ipv6:[2001:db8::1]:4242")],
)
def test_who_called_is_known_when_the_connection_has_gone(peername: tuple[object, ...], told: str) -> None:
    transport = SimpleNamespace(get_extra_info=lambda name: peername if name == "peername" else None)
    request = SimpleNamespace(headers=CIMultiDict(), transport=transport)
    context = HttpContext(request)  # type: ignore[arg-type]
    request.transport = None
    assert context.peer() == told

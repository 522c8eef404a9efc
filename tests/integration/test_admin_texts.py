"""What AdminService refuses where there is no canary, no earlier generation and nothing learned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.message import Message
from serving import Stubs, failure_of

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_protos.v1beta1 import admin_service_pb2 as pb

pytestmark = pytest.mark.wheel


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stubs]:
    store = tmp_path_factory.mktemp("store") / "store.db"
    with EmbeddedServer(Settings(store=f"sqlite:{Path(store)}", admin=True)) as server, Stubs(server.target) as found:
        yield found


@pytest.mark.parametrize(
    ("method", "request_", "text"),
    [
        ("Promote", pb.PromoteRequest(), "there is no canary; set one with SetCanary"),
        ("Rollback", pb.RollbackRequest(), "no generation was stable before this one"),
        (
            "SetCanary",
            pb.SetCanaryRequest(share=0.1),
            "generation: must be given: there is no canary, and no generation waits for a reload",
        ),
        ("SetCanary", pb.SetCanaryRequest(share=2), "share: must be above 0 and below 1, found 2"),
        (
            "SetPrior",
            pb.SetPriorRequest(lessons_id="a", action=pb.PRIOR_ACTION_PIN),
            "lessons_id: must be absent unless action is PRIOR_ACTION_ROLL_BACK",
        ),
        (
            "SetPrior",
            pb.SetPriorRequest(namespace="a", action=pb.PRIOR_ACTION_PIN),
            "namespace 'a' has learned nothing yet",
        ),
        (
            "SetPrior",
            pb.SetPriorRequest(action=pb.PRIOR_ACTION_PIN),
            "namespace without a name has learned nothing yet",
        ),
        ("RevokeToken", pb.RevokeTokenRequest(), "AdminService makes tokens only if the setting authentication"),
    ],
)
def test_the_text_says_why(stubs: Stubs, method: str, request_: Message, text: str) -> None:
    assert failure_of(getattr(stubs.admin, method), request_).message.startswith(text)

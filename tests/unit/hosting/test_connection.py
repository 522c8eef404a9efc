"""Profiles and catalogues are sent once to a server that remembers them, and are never taken for others."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest

from nodewise.domain.configurations import Configurations
from nodewise.domain.profile import Profile
from nodewise.hosting.processes.connection import Connection, ForgottenError
from nodewise.hosting.processes.models import Models
from nodewise.hosting.processes.servicer import Estimators
from nodewise.hosting.processes.wire import write_configurations
from nodewise.plugin import Assessment, Catalogue, Query
from nodewise_protos.plugin.v1 import estimator_service_pb2 as pb
from nodewise_protos.plugin.v1 import estimator_service_pb2_grpc

CATALOGUE = Catalogue()
ROWS = write_configurations(Configurations.of(1, nodes=1, workers=1))


class Names:
    """An estimator that tells the profile it is asked about."""

    def assess(self, profile: Profile, _: Query) -> Assessment:
        return Assessment(evidence=(profile.profile_id,))


@pytest.fixture
def target(tmp_path: Path) -> Iterator[str]:
    found = f"unix:{tmp_path}/names"
    server = grpc.server(ThreadPoolExecutor(1))
    estimators = Estimators({"names": Names()}, Models())
    estimator_service_pb2_grpc.add_EstimatorServiceServicer_to_server(estimators, server)
    server.add_insecure_port(found)
    server.start()
    yield found
    server.stop(None)


def request() -> Any:
    return pb.AssessRequest(estimator="names", configurations=ROWS)


def test_clients_of_one_server_do_not_get_each_other_s_profiles(target: str) -> None:
    with grpc.insecure_channel(target) as one, grpc.insecure_channel(target) as other:
        connections = [Connection(one), Connection(other)]
        profiles = [Profile(profile_id="one"), Profile(profile_id="other")]
        for connection, profile in [*zip(connections, profiles, strict=True)] * 2:
            ask = connection.methods["Assess"]
            response = connection.with_evidence(ask, request(), profile, CATALOGUE)
            assert response.assessment.evidence == [profile.profile_id]


def in_full(asked: Any) -> tuple[bool, bool]:
    return asked.evidence.HasField("profile"), asked.evidence.HasField("catalog")


def test_evidence_is_sent_once_and_in_full_where_the_server_forgot_whatever_other_threads_send() -> None:
    with grpc.insecure_channel("unix:nobody") as channel:
        connection, profile, sent = Connection(channel), Profile(), list[tuple[bool, bool]]()
        send = partial(connection.with_evidence, profile=profile, catalogue=CATALOGUE)
        for _ in range(2):
            send(lambda asked: sent.append(in_full(asked)), request())
        assert sent == [(True, True), (False, False)]

        def forgets(asked: Any) -> None:
            sent.append(in_full(asked))
            if len(sent) == 3:
                send(lambda _: None, request())  # another thread, whose message is still on its way
                raise ForgottenError

        send(forgets, request())
        assert sent[2:] == [(False, False), (True, True)]


def test_a_server_that_forgets_what_it_was_just_sent_is_asked_no_third_time() -> None:
    asked = []

    def forgets(each: Any) -> None:
        asked.append(each)
        raise ForgottenError

    with grpc.insecure_channel("unix:nobody") as channel, pytest.raises(ForgottenError):
        Connection(channel).with_evidence(forgets, request(), Profile(), CATALOGUE)
    assert len(asked) == 2

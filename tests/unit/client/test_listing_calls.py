"""Lists and profiles, as they come from the service."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from nodewise_client import (
    AppendProfileRequest,
    DeleteProfileRequest,
    ListProfilesRequest,
    Network,
    PluginKind,
    ProfileContent,
    Workload,
    configuration_rows,
    configurations,
    numbers_by_name,
    observations,
)
from nodewise_protos.v1 import (
    plugin_pb2,
    prediction_service_pb2,
    profile_pb2,
    profile_service_pb2,
    schedule_service_pb2,
)


def test_lists_follow_pages(client, server):
    page = prediction_service_pb2.ListEstimatorsResponse
    server.answer(
        "ListEstimators",
        page(estimators=[{"plugin": {"name": "a"}, "capabilities": ["phase_timings"]}], next_page_token="2"),
        page(
            estimators=[
                {
                    "plugin": {"name": "b", "version": "1.0"},
                    "score": {
                        "observations_count": 3,
                        "unanswered_count": 1,
                        "coverage": 0.9,
                        "update_time": Timestamp(seconds=1),
                    },
                }
            ],
        ),
    )
    found = client.list_estimators()
    assert [estimator.plugin.name for estimator in found.estimators] == ["a", "b"]
    assert (found.estimators[0].score, found.estimators[0].capabilities) == (None, ("phase_timings",))
    assert (found.estimators[1].score.observations_count, found.estimators[1].score.coverage) == (3, 0.9)
    assert (found.estimators[1].score.unanswered_count, found.estimators[1].score.update_time.timestamp()) == (1, 1.0)
    assert [request.page_token for request in server.requests["ListEstimators"]] == ["", "2"]
    page = prediction_service_pb2.ListPluginsResponse
    problem = {"name": "x", "kind": plugin_pb2.PLUGIN_KIND_POLICY, "problem": {"reason": "PLUGIN_BROKEN"}}
    fifo = {"name": "fifo", "mode": plugin_pb2.PLUGIN_MODE_INLINE}
    server.answer(
        "ListPlugins",
        page(plugins=[fifo], problems=[problem], next_page_token="2"),
        page(plugins=[{"name": "las"}]),
    )
    plugins = client.list_plugins(PluginKind.POLICY)
    assert [(plugin.name, plugin.mode) for plugin in plugins.plugins] == [("fifo", "inline"), ("las", None)]
    assert [(problem.kind, problem.problem.reason) for problem in plugins.problems] == [("policy", "PLUGIN_BROKEN")]
    assert {request.kind for request in server.requests["ListPlugins"]} == {plugin_pb2.PLUGIN_KIND_POLICY}
    page = prediction_service_pb2.ListDevicesResponse
    server.answer(
        "ListDevices",
        page(devices=[{"name": "A100"}], next_page_token="2", catalog_digest="d"),
        page(devices=[{"name": "V100", "facts": [{"name": "fp16_flops_per_s", "value": 1.25e14}]}], catalog_digest="d"),
    )
    devices = client.list_devices()
    assert ([device.name for device in devices.devices], devices.catalog_digest) == (["A100", "V100"], "d")
    assert numbers_by_name(devices.devices[1].facts) == {"fp16_flops_per_s": 1.25e14}
    page = schedule_service_pb2.ListPoliciesResponse
    server.answer(
        "ListPolicies",
        page(policies=[{"name": "fifo"}], next_page_token="2"),
        page(policies=[{"name": "las", "parameters": [{"name": "quantum_seconds", "default_value": 60.0}]}]),
    )
    policies = client.list_policies()
    assert [policy.name for policy in policies.policies] == ["fifo", "las"]
    assert policies.policies[1].parameters[0].default_value == 60.0


@pytest.mark.parametrize("sizes", [[0], [3], [2, 2, 1], [2, 0, 1]])
def test_profiles_are_paged_to_the_end(client, server, sizes):
    names = iter(range(100))
    pages = [[f"p{next(names)}" for _ in range(size)] for size in sizes]
    for number, page in enumerate(pages, 1):
        server.answer(
            "ListProfiles",
            profile_service_pb2.ListProfilesResponse(
                profiles=[{"profile_id": name} for name in page],
                next_page_token=str(number) if number < len(pages) else "",
            ),
        )
    found = client.list_profiles(ListProfilesRequest(name_prefix="p", page_size=2))
    assert [profile.profile_id for profile in found] == [name for page in pages for name in page]
    assert [(r.page_token, r.name_prefix, r.page_size) for r in server.requests["ListProfiles"]] == [
        (str(number) if number else "", "p", 2) for number in range(len(pages))
    ]


def test_a_profile_comes_back_as_it_was_sent(client, server):
    content = ProfileContent(
        workload=Workload(model_name="resnet", samples_per_epoch=1000),
        network=Network(link_bytes_per_second=1.25e9, half_duplex=True),
        observations=observations(
            configurations=configurations(nodes=[2, 4], sync_modes="sync", placements=[(4, 4), (4, 0, 4, 4)]),
            steps_per_second=[3.0, 5.0],
            measured_at_unix_seconds=[1e9, None],
            step_variation=[None, 0.1],
        ),
    )
    server.answer(
        "AppendProfile", profile_service_pb2.AppendProfileResponse(profile={"profile_id": "r", "revision": 1})
    )
    appended = client.append_profile(AppendProfileRequest(profile_id="r", content=content, request_id="mine"))
    assert (appended.revision, appended.content, appended.create_time) == (1, None, None)
    sent = server.requests["AppendProfile"][0]
    assert (sent.profile_id, sent.request_id) == ("r", "mine")
    server.answer(
        "GetProfile",
        profile_service_pb2.GetProfileResponse(
            profile=profile_pb2.Profile(profile_id="r", content=sent.content, create_time=Timestamp(seconds=5))
        ),
    )
    back = client.get_profile("r")
    assert back.content == content
    assert (content.observations.step_variation, content.observations.step_variation_known) == (
        (0.0, 0.1),
        (False, True),
    )
    assert content.observations.measured_at_unix_seconds == (1e9, 0.0)
    assert [row["placements"] for row in configuration_rows(back.content.observations.configurations)] == [
        (4, 4),
        (4, 0, 4, 4),
    ]
    assert back.create_time == datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC)


def test_deleting_names_what_is_deleted(client, server):
    server.answer(
        "DeleteProfile",
        profile_service_pb2.DeleteProfileResponse(profile={"profile_id": "r", "purge_time": Timestamp(seconds=5)}),
    )
    assert client.delete_profile("r", etag="e").purge_time.timestamp() == 5.0
    assert client.delete_profile(DeleteProfileRequest(profile_id="r", etag="*", allow_missing=True)) is None
    first, second = server.requests["DeleteProfile"]
    assert (first.etag, second.etag, second.allow_missing) == ("e", "*", True)
    server.answer("UndeleteProfile", profile_service_pb2.UndeleteProfileResponse(profile={"revision": 3}))
    assert client.undelete_profile("r").revision == 3
    assert server.requests["UndeleteProfile"][0].profile_id == "r"


def test_usage_is_of_all_pages(client, server):
    one, two = ({"namespace": name, "profiles_count": 1} for name in ("a", "b"))
    server.answer("ListUsage", profile_service_pb2.ListUsageResponse(namespaces=[one], next_page_token="t"))
    server.answer("ListUsage", profile_service_pb2.ListUsageResponse(namespaces=[two]))
    assert [each.namespace for each in client.list_usage().namespaces] == ["a", "b"]
    assert [each.page_token for each in server.requests["ListUsage"]] == ["", "t"]

"""The stream of step times apart from PyTorch: windows, what is kept while no server is there, requests to record."""

from __future__ import annotations

import os

import pytest

from nodewise_client import RecordingRequest, ReportStepsResponse
from nodewise_client._delivery import Place, _let_go
from nodewise_client._errors import NodewiseError
from nodewise_client._step_stream import MOST_WINDOWS, StepStream

PLACE = Place(rank=3, world_size=8, nodes=2)
PARTS = (0.1, 0.2, 0.3, 0.25, 0.05)


class Service:
    """A client that takes reports, or is away."""

    def __init__(self) -> None:
        self.requests, self.appended, self.away, self.missing = [], [], False, False
        self.recording = None

    def report_steps(self, request, *, timeout_s):
        if self.away:
            raise NodewiseError("nobody is there")
        if self.missing and not self.appended:
            error = NodewiseError("no such profile")
            error.reason = "PROFILE_NOT_FOUND"
            raise error
        self.requests.append(request)
        return ReportStepsResponse(recording=self.recording)

    def append_profile(self, request):
        self.appended.append(request)


def stream(service, asked=lambda _: None):
    return StepStream(service, "team/job", PLACE, 1, asked, every_s=1e-3)


def closed(found):
    found.start()
    found.close(30.0)


def steps(found, numbers, seconds=1.0, parts=PARTS):
    for number in numbers:
        found.add(number, seconds, parts)


def test_windows_begin_at_multiples_of_their_length():
    service = Service()
    found = stream(service)
    steps(found, range(2, 35))
    closed(found)
    (request,) = service.requests
    assert (request.profile_id, request.rank, request.world_size, request.node) == ("team/job", 3, 8, 1)
    windows = request.windows
    assert (windows.first_steps, windows.steps_counts) == ((10, 20), (10, 10))
    assert windows.step_seconds == (1.0, 1.0)
    assert windows.exchange_seconds == pytest.approx((0.25, 0.25))


def test_short_steps_come_in_longer_windows():
    service = Service()
    found = stream(service)
    steps(found, range(200), seconds=0.03)
    closed(found)
    windows = service.requests[0].windows
    assert all(first % count == 0 for first, count in zip(windows.first_steps, windows.steps_counts, strict=True))
    assert set(windows.steps_counts) == {10, 20, 40}


def test_a_step_that_is_left_out_ends_its_window():
    service = Service()
    found = stream(service)
    steps(found, (number for number in range(40) if number != 15))
    closed(found)
    assert service.requests[0].windows.first_steps == (0, 20, 30)


def test_a_median_is_not_moved_by_one_long_step():
    service = Service()
    found = stream(service)
    for number in range(10):
        found.add(number, 100.0 if number == 4 else 1.0, None)
    closed(found)
    assert service.requests[0].windows.step_seconds == (1.0,)
    assert service.requests[0].windows.forward_seconds == ()


def test_parts_that_are_not_known_are_left_out():
    service = Service()
    found = stream(service)
    steps(found, range(10), parts=(0.1, -1.0, -1.0, -1.0, -1.0))
    closed(found)
    windows = service.requests[0].windows
    assert windows.loading_seconds == pytest.approx((0.1,))
    assert windows.exchange_seconds == ()


def test_a_server_that_is_away_costs_the_oldest_windows_alone(caplog):
    service = Service()
    service.away = True
    found = stream(service)
    steps(found, range(10 * (MOST_WINDOWS + 5)))
    for _ in range(3):
        with pytest.raises(NodewiseError):
            found._report()
    service.away = False
    closed(found)
    windows = service.requests[0].windows
    assert len(windows.first_steps) == MOST_WINDOWS
    assert windows.first_steps[-1] == 10 * (MOST_WINDOWS + 4)


def test_it_complains_once_and_never_raises(caplog):
    service = Service()
    service.away = True
    found = stream(service)
    steps(found, range(10))
    closed(found)
    assert [record.getMessage() for record in caplog.records] == [
        "step times are not sent: UNKNOWN: nobody is there; training goes on"
    ]


def test_a_profile_that_is_not_there_is_made():
    service = Service()
    service.missing = True
    found = stream(service)
    steps(found, range(10))
    closed(found)
    assert [each.profile_id for each in service.appended] == ["team/job"]
    assert len(service.requests) == 1


def test_requests_to_record_are_handed_on():
    service, asked = Service(), []
    service.recording = RecordingRequest(request_id="one", steps_count=3, ranks=(0, 17))
    found = stream(service, asked.append)
    steps(found, range(10))
    closed(found)
    assert asked == [service.recording]


def test_copies_are_bounded_and_the_newest_stays(tmp_path):
    for number, name in enumerate(("rank1.json.gz", "rank1-2.json.gz", "rank1-3.json.gz", "rank11.json.gz")):
        path = tmp_path / name
        path.write_bytes(b"x" * 100)
        os.utime(path, ns=(number, number))
    _let_go(tmp_path, "rank1", 250)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rank1-2.json.gz", "rank1-3.json.gz", "rank11.json.gz"]
    _let_go(tmp_path, "rank1", 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rank1-3.json.gz", "rank11.json.gz"]

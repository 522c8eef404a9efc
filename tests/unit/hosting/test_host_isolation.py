"""What a plugin in a host cannot do: see the server's variables, read its store, inherit its files, fork for ever."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from patience import PATIENCE_S

from nodewise.domain.configurations import Configurations
from nodewise.domain.profile import Profile
from nodewise.hosting.calls import call
from nodewise.hosting.processes.isolation import MOST_PROCESSES
from nodewise.hosting.processes.limits import HostLimits
from nodewise.hosting.registry import Hosting, Registry, load_registry
from nodewise.plugin import ENTRY_POINT_GROUP, Query

SOURCE = """
import os, resource
from nodewise.plugin import *

def tells(find):
    class Tells:
        def assess(self, profile, query):
            try:
                return Assessment(evidence=(repr(find(profile.profile_id)),), strength=0.0)
            except OSError as error:
                return Assessment(evidence=(type(error).__name__,), strength=0.0)
        def fit(self, profile, context):
            return self
    return Tells()

def readable(path):
    with open(path, "rb") as file:
        return len(file.read())

def written(path):
    with open(path, "wb") as file:
        return file.write(b"x")

def descriptors(_):
    links = (f"/proc/self/fd/{each}" for each in os.listdir("/proc/self/fd"))
    return sorted(os.readlink(each) for each in links if os.path.lexists(each))

FINDS = {
    "variables": lambda _: sorted(os.environ), "reads": readable, "writes": written, "descriptors": descriptors,
    "processes": lambda _: resource.getrlimit(resource.RLIMIT_NPROC),
    "server": lambda pid: readable(f"/proc/{pid}/environ"), "own": lambda _: written(os.environ["TMPDIR"] + "/mine"),
}

@hookimpl
def nodewise_estimators():
    return [
        EstimatorRecord(name=name, version="1", description="for tests", estimator=tells(find))
        for name, find in FINDS.items()
    ]
"""
HAS_LANDLOCK = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) >= 1
landlocked = pytest.mark.skipif(not HAS_LANDLOCK, reason="this kernel has no Landlock")


class Distribution:
    """What an entry point needs to know of its own."""

    name, version = "curious", "1.0"

    def locate_file(self, path: str) -> Path:
        """Somewhere on the path."""
        return Path(sys.path[-1]) / path


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    site = tmp_path_factory.mktemp("site")
    (site / "curious.py").write_text(SOURCE, encoding="utf-8")
    point = EntryPoint("curious", "curious", ENTRY_POINT_GROUP)
    vars(point).update(dist=Distribution())
    secret = os.open(site.parent / "inherited", os.O_CREAT | os.O_RDWR)
    os.set_inheritable(secret, True)  # as a careless library does
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(site)])
        patch.setenv("NODEWISE_STORE", "postgresql://nodewise:secret@db/nodewise")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        patch.setenv("LC_TIME", "C")
        patch.setenv("MODELS_AT", "somewhere")
        limits = HostLimits(
            call_budget_s=PATIENCE_S,
            load_budget_s=PATIENCE_S,
            paths=(str(site.parent / "allowed"),),
            environment=("MODELS_AT",),
        )
        (site.parent / "allowed").mkdir(exist_ok=True)
        found = load_registry(entry_points=lambda: [point], hosting=Hosting(limits=limits))
        yield found
        found.close()
    os.close(secret)


def told(registry: Registry, name: str, about: object = "") -> str:
    """What a plugin found."""
    loaded = registry.estimators[name]
    query = Query(configurations=Configurations.of(1, nodes=1, workers=1))
    profile = Profile(profile_id=str(about))
    (found,) = call(loaded, loaded.record.estimator, "assess", profile, query, check=lambda answer: answer).evidence
    return str(found)


def test_the_server_s_variables_are_not_seen(registry: Registry) -> None:
    found = told(registry, "variables")
    assert "PATH" in found
    assert "LC_TIME" in found
    assert "MODELS_AT" in found  # it is named in the settings
    assert "NODEWISE" not in found
    assert "AWS" not in found


def test_no_descriptor_is_inherited(registry: Registry) -> None:
    found = told(registry, "descriptors")
    assert "inherited" not in found
    assert "pipe:" in found  # its output


def test_forks_have_a_bound(registry: Registry) -> None:
    soft, hard = map(int, told(registry, "processes").strip("()").split(","))
    assert soft == hard
    assert MOST_PROCESSES <= soft < 1 << 20
    assert resource.getrlimit(resource.RLIMIT_NPROC)[0] != soft or soft == -1


@landlocked
@pytest.mark.parametrize("name", ["reads", "writes"])
def test_the_store_is_not_reached(registry: Registry, tmp_path: Path, name: str) -> None:
    store = tmp_path / "nodewise.db"
    store.write_bytes(b"everybody's profiles")
    store.chmod(0o600)
    assert told(registry, name, store) == "PermissionError"
    assert store.read_bytes() == b"everybody's profiles"


@landlocked
def test_the_server_s_own_variables_are_not_read_from_outside(registry: Registry) -> None:
    assert told(registry, "server", os.getpid()) == "PermissionError"


@landlocked
def test_a_host_has_a_folder_of_its_own_and_what_is_allowed(
    registry: Registry, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert told(registry, "own") == "1"
    allowed = tmp_path_factory.getbasetemp() / "allowed" / "file"
    assert told(registry, "writes", allowed) == "1"
    assert told(registry, "reads", allowed) == "1"

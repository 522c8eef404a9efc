"""What a caller may: roles, and prefixes of profile ids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewise.domain.principal import ANYONE, Principal, Role, normal_prefix

segments = st.lists(st.sampled_from(["a", "ab", "b", "c"]), min_size=1, max_size=3).map("/".join)


def held_to(*prefixes: str) -> Principal:
    return Principal("token:x", frozenset({Role.READ}), tuple(map(normal_prefix, prefixes)))


def test_a_prefix_is_of_whole_segments() -> None:
    team = held_to("team-a")
    assert team.covers("team-a/vgg16")
    assert team.covers("team-a/vision/vgg16")
    assert not team.covers("team-ab/vgg16")
    assert not team.covers("team-a")
    assert not team.covers("")
    assert held_to("*").everywhere
    assert not team.everywhere
    assert not held_to().covers("team-a/vgg16")


@pytest.mark.parametrize(
    ("asked", "own", "scopes"),
    [
        ("", ["b", "a"], ("a/", "b/")),
        ("a/x", ["a", "b"], ("a/x",)),
        ("a", ["a/x", "a/y", "b"], ("a/x/", "a/y/")),
        ("c", ["a", "b"], ()),
        ("", ["a", "a/x"], ("a/",)),
        ("a", ["*"], ("a",)),
        ("", [], ()),
    ],
)
def test_what_is_listed_begins_as_asked_and_is_the_caller_s(asked: str, own: list[str], scopes: tuple[str]) -> None:
    assert held_to(*own).scopes(asked) == scopes


@given(asked=st.text("ab/", max_size=4), own=st.lists(segments, max_size=3), name=segments)
def test_scopes_hold_what_is_asked_for_and_covered_once(asked: str, own: list[str], name: str) -> None:
    principal = held_to(*own)
    within = [scope for scope in principal.scopes(asked) if name.startswith(scope)]
    assert len(within) == (principal.covers(name) and name.startswith(asked))


def test_roles_and_namespace() -> None:
    assert ANYONE.has([Role.ADMIN])
    assert ANYONE.everywhere
    assert not ANYONE.is_known
    assert not held_to("a").has([Role.INGEST, Role.ADMIN])
    assert held_to("a").has([Role.READ])
    assert Principal("token:x", frozenset({Role.ADMIN})).has([Role.INGEST])
    assert held_to("a/x", "a/y").namespace == "a"
    assert held_to("a", "b").namespace == held_to("*").namespace == held_to().namespace == ""


def test_time_is_over_at_its_end() -> None:
    until = Principal("token:x", frozenset(), (), expire_time_s=10.0)
    assert not until.is_expired(9.9)
    assert until.is_expired(10.0)
    assert not ANYONE.is_expired()

"""Caches that share room: what goes, what is counted once, and that the sum is right whatever happens."""

from __future__ import annotations

import random

import pytest

from nodewise.ports.cache import CacheSpace, LruCache, Part


def test_of_all_caches_of_a_space_the_entry_used_least_recently_goes() -> None:
    space = CacheSpace(10)
    numbers, texts = LruCache[str, int](space), LruCache[str, str](space)
    numbers.put("a", 1, 4)
    texts.put("a", "one", 4)
    assert numbers.get("a") == 1
    texts.put("b", "two", 4)
    assert (numbers.get("a"), texts.get("a"), texts.get("b")) == (1, None, "two")
    assert (len(numbers), len(texts), space.weight) == (1, 1, 8)


def test_what_entries_share_is_counted_once_until_the_last_of_them_goes() -> None:
    space, shared = CacheSpace(100), object()
    cache = LruCache[int, object](space)
    for key in range(3):
        cache.put(key, shared, 1, ((shared, 50),))
    assert space.weight == 53
    cache.drop(lambda key: key < 2)
    assert space.weight == 51
    cache.clear()
    assert space.weight == 0


def test_what_becomes_heavier_makes_others_go_and_itself_where_nothing_else_is_left() -> None:
    space = CacheSpace(10)
    cache = LruCache[str, int](space)
    for key in ("a", "b"):
        cache.put(key, 1, 3)
    cache.weigh("b", 8)
    assert (cache.get("a"), cache.get("b"), space.weight) == (None, 1, 8)
    cache.weigh("gone", 8)
    assert space.weight == 8
    cache.weigh("b", 11)
    assert (cache.get("b"), space.weight) == (None, 0)


def test_what_weighs_more_than_the_space_is_not_kept_and_costs_nobody_a_place() -> None:
    cache = LruCache[str, int](10)
    cache.put("a", 1, 5)
    cache.put("large", 2, 11)
    cache.put("large", 2, 1, ((object(), 10),))
    assert (cache.get("a"), cache.get("large")) == (1, None)


def test_a_value_that_is_let_go_of_may_ask_the_cache() -> None:
    cache = LruCache[int, object](1)
    seen = []

    class Asks:
        def __del__(self) -> None:
            seen.append(cache.get(1))

    cache.put(0, Asks())
    cache.put(1, "next")
    assert seen == ["next"]


@pytest.mark.parametrize("seed", range(5))
def test_the_weight_is_that_of_what_is_kept(seed: int) -> None:
    draw, space = random.Random(seed), CacheSpace(60)
    caches = [LruCache[int, tuple[int, tuple[Part, ...]]](space) for _ in range(3)]
    things = [(object(), draw.randrange(1, 20)) for _ in range(4)]
    for _ in range(500):
        cache, key = draw.choice(caches), draw.randrange(6)
        match draw.randrange(5):
            case 0:
                cache.get(key)
            case 1:
                cache.drop(lambda known, key=key: known == key)  # type: ignore[misc]  # a default is no parameter
            case _:
                weight, parts = draw.randrange(1, 9), tuple(draw.sample(things, draw.randrange(3)))
                cache.put(key, (weight, parts), weight, parts)
        kept = [found for each in caches for key in range(6) if (found := each.get(key)) is not None]
        shared = {id(part): weight for _, parts in kept for part, weight in parts}
        assert space.weight == sum(weight for weight, _ in kept) + sum(shared.values()) <= space.capacity

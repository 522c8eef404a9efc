"""What each layer of a `config.json` holds: attention, with or without a window, a state space, a feed-forward part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

from nodewise_client._hugging_face_reader import Reader

SLIDING: Final = "sliding_attention"
FULL: Final = "full_attention"
MAMBA: Final = "mamba"
HYBRID: Final = "hybrid"
"""Attention and a state space in one layer."""
MLP: Final = "mlp"
MOE: Final = "moe"
_SAME: Final[Mapping[str, str]] = {"attention": FULL, "linear_attention": MAMBA}
_LETTERS: Final = {"M": MAMBA, "*": FULL, "-": MLP, "E": MOE}
"""Layers in the pattern of Nemotron-H."""
_STATE_SPACES: Final = frozenset({MAMBA, HYBRID})
_ATTENTIONS: Final = frozenset({FULL, SLIDING, HYBRID})
_ALONE: Final = frozenset({MLP, MOE})
"""Layers without a mixer; a model that has them has no feed-forward part in its others."""

Rule = Callable[[Reader, int], list[str]]
"""The kinds of so many layers where no list of them is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixer:
    """How a family writes the state-space mixers of its layers."""

    heads: str = "mamba_n_heads"
    head_size: str = "mamba_d_head"
    expand: str = "mamba_expand"
    state: str = "mamba_d_state"
    groups: str = "mamba_n_groups"
    state_default: int = 256
    feed_forward: frozenset[str] = frozenset({MAMBA, FULL, HYBRID})
    """Kinds of layers with a feed-forward part besides those that are nothing else."""


def _step(every: int, rest: str, nth: str, keys: tuple[str, ...], reader: Reader, layers: int) -> list[str]:
    step = reader.count(keys, otherwise=every) if keys else every
    return [rest if (layer + 1) % step else nth for layer in range(layers)]


def _from_one_on(reader: Reader, layers: int) -> list[str]:
    first = reader.count(("max_window_layers",), otherwise=layers, least=0)
    return [SLIDING if layer >= first else FULL for layer in range(layers)]


def _period(reader: Reader, layers: int) -> list[str]:
    period = reader.count(("attn_layer_period",), otherwise=8)
    offset = reader.count(("attn_layer_offset",), otherwise=4, least=0)
    return [FULL if layer % period == offset else MAMBA for layer in range(layers)]


def _indices(key: str, letter: str, reader: Reader, layers: int) -> list[str]:
    indices = reader.config.get(key) or []
    if not isinstance(indices, list):
        raise reader.wrong(key, f"must be a list of layers, found {indices!r}")
    return [letter if layer in indices else MAMBA for layer in range(layers)]


def _pattern(reader: Reader, layers: int) -> list[str]:
    pattern = reader.config.get("hybrid_override_pattern")
    if not isinstance(pattern, str) or pattern.strip("".join(_LETTERS)):
        raise reader.wrong(
            "hybrid_override_pattern", f"must be one of the letters M, *, - and E for each layer, found {pattern!r}"
        )
    if len(pattern) != layers:
        raise reader.wrong("hybrid_override_pattern", f"must have {layers} letters, found {len(pattern)}")
    return [_LETTERS[letter] for letter in pattern]


def _all(kind: str, _: Reader, layers: int) -> list[str]:
    return [kind] * layers


_WINDOW_RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "cohere2": partial(_step, 4, SLIDING, FULL, ("sliding_window_pattern",)),
        "gemma2": partial(_step, 2, SLIDING, FULL, ()),
        "gemma3_text": partial(_step, 6, SLIDING, FULL, ("sliding_window_pattern", "_sliding_window_pattern")),
        "gpt_oss": partial(_step, 2, SLIDING, FULL, ()),
        "mistral": partial(_all, SLIDING),
        "mixtral": partial(_all, SLIDING),
        "olmo3": partial(_step, 4, SLIDING, FULL, ()),
        "phi3": partial(_all, SLIDING),
        "qwen2": _from_one_on,
        "qwen2_moe": _from_one_on,
        "qwen3": _from_one_on,
        "qwen3_moe": _from_one_on,
        "starcoder2": partial(_all, SLIDING),
    }
)
"""Families with a sliding window: which layers have it."""
_WINDOWS: Final = {"cohere2": 4096, "gemma2": 4096, "gemma3_text": 4096, "gpt_oss": 128, "mistral": 4096, "olmo3": 4096}
"""Windows in tokens where `sliding_window` is left out."""
_HYBRIDS: Final[Mapping[str, tuple[Rule, Mixer]]] = MappingProxyType(
    {
        "bamba": (partial(_indices, "attn_layer_indices", FULL), Mixer()),
        "falcon_h1": (partial(_all, HYBRID), Mixer()),
        "granitemoehybrid": (partial(_all, MAMBA), Mixer()),
        "jamba": (_period, Mixer(heads="", state_default=16)),
        "mamba2": (
            partial(_all, MAMBA),
            Mixer(
                heads="num_heads", head_size="head_dim", expand="expand", state="state_size", groups="n_groups",
                state_default=128, feed_forward=frozenset(),
            ),
        ),
        "nemotron_h": (
            _pattern,
            Mixer(
                heads="mamba_num_heads", head_size="mamba_head_dim", expand="expand", state="ssm_state_size",
                groups="n_groups", state_default=128, feed_forward=frozenset(),
            ),
        ),
        "qwen3_next": (
            partial(_step, 4, MAMBA, FULL, ("full_attention_interval",)),
            Mixer(
                heads="linear_num_value_heads", head_size="linear_value_head_dim", state="linear_key_head_dim",
                groups="linear_num_key_heads", state_default=128,
            ),
        ),
        "zamba2": (
            partial(_indices, "hybrid_layer_ids", HYBRID),
            Mixer(heads="", groups="mamba_ngroups", state_default=64, feed_forward=frozenset({HYBRID})),
        ),
    }
)  # fmt: skip
"""Families with state-space layers."""


def kinds_of_layers(reader: Reader, kind: str, layers: int) -> list[str]:
    """The kind of every layer: as the configuration lists them, else as the family's class decides."""
    for key in ("layers_block_type", "layer_types"):
        entries = reader.config.get(key)
        if entries is None:
            continue
        known_kinds = sorted({SLIDING, FULL, MAMBA, HYBRID, MLP, MOE, *_SAME})
        if not isinstance(entries, list) or not all(word in known_kinds for word in entries):
            raise reader.wrong(key, f"must be a list of {', '.join(known_kinds)}, found {entries!r}")
        if len(entries) != layers:
            raise reader.wrong(key, f"must name {layers} layers, found {len(entries)}")
        return [_SAME.get(word, str(word)) for word in entries]
    rule = _HYBRIDS[kind][0] if kind in _HYBRIDS else _WINDOW_RULES.get(kind, partial(_all, FULL))
    return rule(reader, layers)


def facts_of_layers(reader: Reader, kind: str, kinds: list[str], hidden_size: int) -> dict[str, int | None]:
    """The fields of a `Transformer` that tell its layers apart; none where all are alike with full attention."""
    facts: dict[str, int | None] = {}
    attending = sum(word in _ATTENTIONS for word in kinds)
    window_layers, window = kinds.count(SLIDING), _window(reader, kind)
    if window_layers and window:
        facts |= {
            "attention_window_tokens": window,
            "windowed_layers_count": window_layers if window_layers < attending else None,
        }
    if kind in _HYBRIDS:
        facts |= _state_space(reader, kind, kinds, hidden_size)
    return facts


def _window(reader: Reader, kind: str) -> int:
    if kind.startswith("qwen") and not reader.flag("use_sliding_window", otherwise=False):
        return 0
    if "sliding_window" in reader.config and reader.config["sliding_window"] is None:
        return 0
    return reader.count(("sliding_window",), otherwise=_WINDOWS.get(kind, 0))


def _state_space(reader: Reader, kind: str, kinds: list[str], hidden_size: int) -> dict[str, int | None]:
    mixer = _HYBRIDS[kind][1]
    feeding = sum(word in _ALONE or word in mixer.feed_forward for word in kinds)
    size, state = _size(reader, mixer, hidden_size), reader.count((mixer.state,), otherwise=mixer.state_default)
    _note_groups(reader, kind, mixer, (size, state, hidden_size))
    if kind == "zamba2":
        blocks = reader.count(("num_mem_blocks",), otherwise=1)
        reader.notes.append(
            f"the {feeding} attention layers share the weights of {blocks}: parameters count at each use, and "
            "attention is assumed to read the residual stream once"
        )
    return {
        "attention_layers_count": sum(word in _ATTENTIONS for word in kinds) or None,
        "state_space_layers_count": sum(word in _STATE_SPACES for word in kinds) or None,
        "state_space_size": size,
        "state_size": state,
        # The contract knows no model without any: one layer, which `feed_forward_size` makes as good as none.
        "feed_forward_layers_count": (feeding or 1) if feeding < len(kinds) else None,
    }


def _size(reader: Reader, mixer: Mixer, hidden_size: int) -> int:
    if reader.config.get("mamba_d_ssm") is not None:
        return reader.count(("mamba_d_ssm",))
    if mixer.heads and isinstance(reader.config.get(mixer.head_size), int):
        return reader.count((mixer.heads,)) * reader.count((mixer.head_size,))
    return hidden_size * reader.count((mixer.expand,), otherwise=2)


def _note_groups(reader: Reader, kind: str, mixer: Mixer, sizes: tuple[int, int, int]) -> None:
    """Projections of the mixer that its channels and state do not say."""
    size, state, hidden_size = sizes
    groups = reader.config.get(mixer.groups)
    if not isinstance(groups, int) or groups <= 1:
        return
    plain, more = 3 * size * hidden_size, 2 * (groups - 1) * state * hidden_size
    what = "key heads of linear attention" if kind == "qwen3_next" else "groups"
    reader.notes.append(
        f"{mixer.groups}: {groups} {what} are not supported: a mixer is assumed to have one, with "
        f"{more / plain:.0%} fewer parameters"
    )

"""The redactor: what is private never survives, what is not never changes, JSON stays JSON."""

from __future__ import annotations

import io
import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from nodewise_client import redacted
from nodewise_client._redaction import READ_BYTES

QUICK = settings(deadline=None)

USER, HOST = "mallory7", "trainer-17"

letters = st.text(st.characters(categories=["Lu", "Ll", "Nd"], include_characters="_-. é"), min_size=1, max_size=12)
folder = letters.filter(lambda name: name.strip() == name and name.strip("."))
folders = st.lists(folder, max_size=4)
between = st.sampled_from([" ", "\n", "\t", ";", ": ", "(", '"', "'", "=", "|", ", "])
KEYS = ["ph", "cat", "name", "user_annotation"]
plain_words = st.sampled_from(
    [
        "aten::convolution_backward",
        "/job:worker/replica:0/task:0/device:GPU:0",
        "torch/nn/modules/module.py(1775): _call_impl",
        "void at::native::elementwise_kernel<128, 4, a/b>(int, float const*)",
        "gloo:all_reduce",
        "jit(step)/jit(main)/dot_general",
        "ProfilerStep#7",
        "3 / 4",
        "operator/",
        "/host:CPU",
        "autograd::engine::evaluate_function: AddmmBackward0",
        "std::vector<std::pair<int, char*> >",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "MEMCPY@2",
    ]
)


def clean(value: Any, *, names: tuple[str, ...] = (USER, HOST), ascii_only: bool = True, indent: int | None = 2) -> str:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    return b"".join(redacted(io.BytesIO(text.encode()), names=names)).decode()


@st.composite
def posix_paths(draw):
    root = draw(st.sampled_from([f"/home/{USER}", f"/Users/{USER}", f"/gpfs/people/{USER}", f"~{USER}", f"../{USER}"]))
    return "/".join([root, *draw(folders), draw(st.sampled_from(["train.py", "run.sh", "", "model.ckpt"]))])


@st.composite
def windows_paths(draw):
    root = draw(st.sampled_from([f"C:\\Users\\{USER}", f"d:\\work\\{USER}", f"\\\\{HOST}\\share\\{USER}"]))
    return "\\".join([root, *draw(folders), draw(st.sampled_from(["train.py", ""]))])


@QUICK
@given(
    pieces=st.lists(st.tuples(between, posix_paths() | windows_paths(), st.sampled_from(["", "\n", ";", "(12): f"]))),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 1]),
)
@example(pieces=[("", f"/home/{USER}/train.py", "\n")], ascii_only=True, indent=None)
@example(pieces=[("\n", f"/home/{USER}/train.py", "(3): main")], ascii_only=True, indent=None)
@example(pieces=[("", f"/home/{USER}", "")], ascii_only=True, indent=None)
def test_no_folder_survives(pieces, ascii_only, indent):
    value = {"name": "".join(part for piece in pieces for part in piece), "args": [piece[1] for piece in pieces]}
    # Without being told the names: the paths themselves have to go.
    after = clean(value, names=(), ascii_only=ascii_only, indent=indent)
    assert USER not in after
    assert HOST not in after
    json.loads(after)


@QUICK
@given(st.lists(st.tuples(between, st.sampled_from([USER, HOST, USER.upper(), HOST.title()]), between)), st.booleans())
def test_no_name_survives_as_a_word(pieces, ascii_only):
    value = {USER: "".join(part for piece in pieces for part in piece)}
    after = json.loads(clean(value, ascii_only=ascii_only))
    assert after.keys() == value.keys()
    assert USER not in after[USER].lower()
    assert HOST not in after[USER].lower()


@QUICK
@given(
    st.sampled_from(["host_name", "hostname", "hostName", "Host Name", "user", "user_name", "username", "login"]),
    st.text(),
)
def test_named_fields_say_nothing(key, value):
    assert json.loads(clean({key: value}))[key] == "redacted"


@QUICK
@given(
    st.recursive(
        plain_words | st.integers() | st.floats(allow_nan=False) | st.booleans() | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYS), inner),
        max_leaves=20,
    ),
    st.sampled_from([None, 0, 1]),
)
def test_what_is_not_private_stays(value, indent):
    assert clean(value, indent=indent) == json.dumps(value, indent=indent)


@QUICK
@given(st.integers(0, 400), st.integers(1, 3))
def test_where_the_reading_is_cut_makes_no_difference(shift, events):
    """Paths across the border between two reads are found as well."""
    filler = {"name": "x" * (READ_BYTES - shift)}
    event = {"args": {"file": f"/home/{USER}/deep/er/train.py(3): f"}, "host_name": HOST}
    after = clean([filler, *[event] * events], indent=None)
    assert json.loads(after) == [filler, *[{"args": {"file": "train.py(3): f"}, "host_name": "redacted"}] * events]


@QUICK
@given(st.binary(max_size=300))
def test_any_bytes_go_through(content):
    """Profilers write files that are no JSON; nothing is raised, and cleaning twice is cleaning once."""
    once = b"".join(redacted(io.BytesIO(content), names=(USER,)))
    assert b"".join(redacted(io.BytesIO(once), names=(USER,))) == once

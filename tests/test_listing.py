from __future__ import annotations

from pathlib import Path

import pytest

import muser_viz as mv
from muser_viz import resources
from muser_viz.devices import source
from muser_viz.listing import taken_apart

STORES = ("muser_kv_store_f16", "muser_kv_store_batch_f16")

MADE = """/* first:
   n in a comment */
kernel void one(device float *out [[buffer(0)]], constant uint &n [[buffer(1)]],
                uint i [[thread_position_in_grid]])
{
    // n again
    if (i >= n) { return; }  // n

    out[i] = 1.0f;
}
kernel void two(device const half *given [[buffer(0)]], device float *out [[buffer(1)]],
                uint i [[thread_position_in_grid]]) { out[i] = given[i]; }
"""


@pytest.mark.parametrize("name", STORES)
def test_a_store_kernel_is_shown_as_it_is_on_disk(name: str) -> None:
    shown = mv.kernel_source(name)
    path = resources.folder("kernels") / f"{name}.metal"
    assert shown.text == path.read_text(encoding="utf-8")
    lines = str(shown).splitlines()
    assert [line[5:] for line in lines] == shown.text.splitlines()
    assert [int(line[:3]) for line in lines] == list(range(1, len(lines) + 1))
    for number, line in shown.body.items():
        assert shown.text.splitlines()[number - 1].startswith(line)


@pytest.mark.parametrize("name", list(source.catalogue()))
def test_every_kernel_uses_each_of_its_buffers(name: str) -> None:
    shown = mv.kernel_source(name)
    assert shown.buffers == source.catalogue()[name].buffers
    for buffer in shown.buffers:
        assert shown.uses(buffer.name), buffer.name


def test_positions_are_used_in_one_line_of_the_batch_kernel() -> None:
    shown = mv.kernel_source("muser_kv_store_batch_f16")
    age = shown.uses("start_position")
    assert age == shown.uses("origin_logical")
    assert list(age.values()) == ["const uint age = start_position + source_row - origin_logical;"]


def test_lines_are_counted_over_comments_and_other_kernels() -> None:
    kernels = source.parse(MADE, Path("made.metal"))
    one, two = (taken_apart(MADE, kernels[name], Path("made.metal")) for name in ("one", "two"))
    assert one.uses("n") == {7: "if (i >= n) { return; }"}
    assert one.uses("out") == {9: "out[i] = 1.0f;"}
    assert list(two.uses("out")) == [12]


def test_the_table() -> None:
    shown = mv.kernel_source("muser_kv_store_f16")
    lines = shown.table().splitlines()
    assert len(lines) == 7
    assert lines[1].split()[:5] == ["0", "device", "const", "float", "*"]
    assert lines[3].split()[:4] == ["2", "device", "half", "*"]
    assert lines[6].split()[:5] == ["5", "constant", "uint", "&", "write_index"]
    told = shown.table({"kv_dim": 256, "write_index": 1952}).splitlines()
    assert told[0].endswith("value")
    assert told[6].endswith(" 1,952")
    assert not any(line.endswith(" ") for line in told)


def test_names_that_are_none() -> None:
    with pytest.raises(mv.InputError, match="'store' was asked for; there are muser_kv_rows_f16"):
        mv.kernel_source("store")
    with pytest.raises(mv.InputError, match="no buffer 'position'; it has key, value"):
        mv.kernel_source("muser_kv_store_f16").uses("position")

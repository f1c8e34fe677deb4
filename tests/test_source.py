from __future__ import annotations

import re
from pathlib import Path

import pytest

import muser_viz as mv
from muser_viz import resources
from muser_viz.devices import source
from muser_viz.devices.source import parse

HERE = Path("made.metal")

# facts of §15.4: the buffer tables, (name, type, kind) by index
STORE = [
    ("key", "float", "in"),
    ("value", "float", "in"),
    ("key_cache", "half", "out"),
    ("value_cache", "half", "out"),
    ("kv_dim", "uint", "scalar"),
]
TABLES = {
    "muser_kv_store_f16": [*STORE, ("write_index", "uint", "scalar")],
    "muser_kv_store_batch_f16": [
        *STORE,
        *(
            (name, "uint", "scalar")
            for name in (
                "source_first",
                "source_count",
                "start_position",
                "capacity",
                "origin_logical",
                "origin_physical",
                "head_dim",
                "head_major",
            )
        ),
    ],
}


@pytest.mark.parametrize("name", TABLES)
def test_the_store_kernels_have_the_chapters_buffer_tables(name: str) -> None:
    kernel = source.catalogue()[name]
    assert [(p.name, p.base, p.kind) for p in kernel.buffers] == TABLES[name]


def test_every_kernel_numbers_its_buffers_in_order() -> None:
    assert len(source.catalogue()) == 9
    for kernel in source.catalogue().values():
        assert [p.index for p in kernel.buffers] == list(range(len(kernel.buffers)))
        assert kernel.thread_type == "uint"


def test_a_kernel_is_written_in_one_place_only() -> None:
    root = resources.folder("kernels").parent
    for path in (root / "muser_viz").rglob("*.*"):
        if path.suffix in (".py", ".cpp", "") and "_data" not in path.parts:
            assert not re.search(r"kernel\s+void\s+muser_", path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no `kernel void"),
        ("kernel void f(uint x [[thread_position_in_grid]]", "never closed"),
        ("kernel void f(uint x [[thread_position_in_grid]])", "no body"),
        ("kernel void f(uint x [[thread_position_in_grid]]) { if (x) {", "never closed"),
        ("kernel void f(device float *a) {}", r"needs \[\[buffer"),
        ("kernel void f(device float *a [[buffer(0)]]) {}", "thread_position_in_grid"),
    ],
)
def test_a_file_that_cannot_be_taken_apart(text: str, said: str) -> None:
    with pytest.raises(mv.KernelError, match=f"made.metal.*{said}"):
        parse(text, HERE)


def test_comments_and_commas_do_not_mislead() -> None:
    text = """
    #include <metal_stdlib>
    using namespace metal;
    // kernel void not_me(
    static inline float twice(float x) { return 2 * x; }
    kernel void f(device const float *a [[buffer(0)]], /* , */ constant float &b [[ buffer( 1 ) ]],
                  uint at [[thread_position_in_grid]]) { // }
        if (at) { }
    }"""
    kernel = parse(text, HERE)["f"]
    assert [(p.name, p.base, p.kind) for p in kernel.buffers] == [
        ("a", "float", "in"),
        ("b", "float", "scalar"),
    ]
    assert kernel.helpers == "static inline float twice(float x) { return 2 * x; }"
    assert "include" not in kernel.helpers
    assert kernel.body.split() == ["if", "(at)", "{", "}"]

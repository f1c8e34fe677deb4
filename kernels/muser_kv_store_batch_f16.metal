// The live rows of a chunk into a plane of either layout (§15.4).
//
// One thread per element, grid source_count * kv_dim. key and value hold the
// whole chunk; rows before source_first have already left the window. A row is
// found from the plane's explicit origins, never from a position modulo the
// capacity. The assignment rounds f32 to f16, to nearest, ties to even.
#include <metal_stdlib>
using namespace metal;

kernel void muser_kv_store_batch_f16(
    device const float *key        [[buffer(0)]],
    device const float *value      [[buffer(1)]],
    device half *key_cache         [[buffer(2)]],
    device half *value_cache       [[buffer(3)]],
    constant uint &kv_dim          [[buffer(4)]],
    constant uint &source_first    [[buffer(5)]],
    constant uint &source_count    [[buffer(6)]],
    constant uint &start_position  [[buffer(7)]],
    constant uint &capacity        [[buffer(8)]],
    constant uint &origin_logical  [[buffer(9)]],
    constant uint &origin_physical [[buffer(10)]],
    constant uint &head_dim        [[buffer(11)]],
    constant uint &head_major      [[buffer(12)]],
    uint thread_index              [[thread_position_in_grid]])
{
    if (thread_index >= source_count * kv_dim) {
        return;
    }
    const uint source_row = source_first + thread_index / kv_dim;
    const uint element = thread_index % kv_dim;
    const uint age = start_position + source_row - origin_logical;
    const uint physical = (origin_physical + age) % capacity;

    const uint kv_head = element / head_dim;
    const uint dim = element % head_dim;
    const uint cell = head_major != 0
        ? (kv_head * capacity + physical) * head_dim + dim
        : physical * kv_dim + element;

    const uint source = source_row * kv_dim + element;
    key_cache[cell] = key[source];
    value_cache[cell] = value[source];
}

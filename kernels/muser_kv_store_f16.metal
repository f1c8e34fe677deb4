// One token's K and V into its row of a token-major plane (§15.4).
//
// One thread per element, grid kv_dim. The row comes from the ring's
// bookkeeping; no token position reaches this kernel. The assignment rounds
// f32 to f16, to nearest, ties to even.
#include <metal_stdlib>
using namespace metal;

kernel void muser_kv_store_f16(
    device const float *key        [[buffer(0)]],
    device const float *value      [[buffer(1)]],
    device half *key_cache         [[buffer(2)]],
    device half *value_cache       [[buffer(3)]],
    constant uint &kv_dim          [[buffer(4)]],
    constant uint &write_index     [[buffer(5)]],
    uint element                   [[thread_position_in_grid]])
{
    if (element >= kv_dim) {
        return;
    }
    const uint cell = write_index * kv_dim + element;
    key_cache[cell] = key[element];
    value_cache[cell] = value[element];
}

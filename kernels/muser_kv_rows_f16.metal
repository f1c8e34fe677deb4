// Rows of a plane handed to a model that computes attention itself (§15.10):
// head by head, in the model's type.
//
// Grid (filled_rows / 8, rounded up) * kv_dim: one thread takes one element of 8
// rows, and divides once for them. Row i of what is handed over is the plane's row
// first + i, and from low_rows on second + i - low_rows: live rows in ascending
// physical order, or going round from the oldest. It goes to row out_first + i of
// arrays with out_rows rows a head. The elements of K lie outermost there where
// key_by_element is set. From row `rows` on, up to filled_rows, the arrays are filled
// with zeros.
#include <metal_stdlib>
using namespace metal;

static inline uint muser_plane_cell(uint physical, uint head, uint dim, uint kv_dim, uint head_dim,
                                    uint capacity, uint head_major)
{
    return head_major != 0
        ? (head * capacity + physical) * head_dim + dim
        : physical * kv_dim + head * head_dim + dim;
}

static inline uint muser_row_cell(uint row, uint head, uint dim, uint head_dim, uint rows, uint by_element)
{
    return by_element != 0
        ? (head * head_dim + dim) * rows + row
        : (head * rows + row) * head_dim + dim;
}

// From row old_rows on, rows of a chunk that may not be in the plane yet,
// rounded as a store rounds them.
kernel void muser_kv_rows_f16(
    device const float *key        [[buffer(0)]],
    device const float *value      [[buffer(1)]],
    device const half *key_cache   [[buffer(2)]],
    device const half *value_cache [[buffer(3)]],
    device float *key_rows         [[buffer(4)]],
    device float *value_rows       [[buffer(5)]],
    constant uint &kv_dim          [[buffer(6)]],
    constant uint &head_dim        [[buffer(7)]],
    constant uint &capacity        [[buffer(8)]],
    constant uint &head_major      [[buffer(9)]],
    constant uint &rows            [[buffer(10)]],
    constant uint &first           [[buffer(11)]],
    constant uint &low_rows        [[buffer(12)]],
    constant uint &second          [[buffer(13)]],
    constant uint &out_first       [[buffer(14)]],
    constant uint &out_rows        [[buffer(15)]],
    constant uint &key_by_element  [[buffer(16)]],
    constant uint &filled_rows     [[buffer(17)]],
    constant uint &old_rows        [[buffer(18)]],
    uint thread_index              [[thread_position_in_grid]])
{
    const uint element = thread_index % kv_dim;
    const uint head = element / head_dim;
    const uint dim = element % head_dim;
    const uint start = 8 * (thread_index / kv_dim);
    half k[8];
    half v[8];
    for (uint n = 0; n < 8 && start + n < filled_rows; ++n) {
        const uint i = start + n;
        k[n] = 0;
        v[n] = 0;
        if (i < old_rows) {
            const uint physical = i < low_rows ? first + i : second + (i - low_rows);
            const uint cell = muser_plane_cell(physical, head, dim, kv_dim, head_dim, capacity, head_major);
            k[n] = key_cache[cell];
            v[n] = value_cache[cell];
        } else if (i < rows) {
            const uint source = (i - old_rows) * kv_dim + element;
            k[n] = key[source];
            v[n] = value[source];
        }
    }
    for (uint n = 0; n < 8 && start + n < filled_rows; ++n) {
        const uint row = out_first + start + n;
        key_rows[muser_row_cell(row, head, dim, head_dim, out_rows, key_by_element)] = float(k[n]);
        value_rows[muser_row_cell(row, head, dim, head_dim, out_rows, 0)] = float(v[n]);
    }
}

// One token stored and rows handed over, in one launch (§15.8, the fused
// store). The thread that hands over an element of row write_index is the one
// that stores it, so nothing has to wait in between. Rows are read before the
// row is known that is written: a read then waits for nothing but its address.
kernel void muser_kv_store_rows_f16(
    device const float *key        [[buffer(0)]],
    device const float *value      [[buffer(1)]],
    device half *key_cache         [[buffer(2)]],
    device half *value_cache       [[buffer(3)]],
    device float *key_rows         [[buffer(4)]],
    device float *value_rows       [[buffer(5)]],
    constant uint &kv_dim          [[buffer(6)]],
    constant uint &head_dim        [[buffer(7)]],
    constant uint &capacity        [[buffer(8)]],
    constant uint &head_major      [[buffer(9)]],
    constant uint &rows            [[buffer(10)]],
    constant uint &first           [[buffer(11)]],
    constant uint &low_rows        [[buffer(12)]],
    constant uint &second          [[buffer(13)]],
    constant uint &out_first       [[buffer(14)]],
    constant uint &out_rows        [[buffer(15)]],
    constant uint &key_by_element  [[buffer(16)]],
    constant uint &filled_rows     [[buffer(17)]],
    constant uint &write_index     [[buffer(18)]],
    uint thread_index              [[thread_position_in_grid]])
{
    const uint element = thread_index % kv_dim;
    const uint head = element / head_dim;
    const uint dim = element % head_dim;
    const uint start = 8 * (thread_index / kv_dim);
    half k[8];
    half v[8];
    for (uint n = 0; n < 8 && start + n < filled_rows; ++n) {
        const uint i = start + n;
        k[n] = 0;
        v[n] = 0;
        if (i < rows) {
            const uint physical = i < low_rows ? first + i : second + (i - low_rows);
            const uint cell = muser_plane_cell(physical, head, dim, kv_dim, head_dim, capacity, head_major);
            k[n] = key_cache[cell];
            v[n] = value_cache[cell];
        }
    }
    for (uint n = 0; n < 8 && start + n < filled_rows; ++n) {
        const uint i = start + n;
        const uint physical = i < low_rows ? first + i : second + (i - low_rows);
        if (i < rows && physical == write_index) {
            const uint cell = muser_plane_cell(physical, head, dim, kv_dim, head_dim, capacity, head_major);
            k[n] = key[element];
            v[n] = value[element];
            key_cache[cell] = k[n];
            value_cache[cell] = v[n];
        }
        const uint row = out_first + i;
        key_rows[muser_row_cell(row, head, dim, head_dim, out_rows, key_by_element)] = float(k[n]);
        value_rows[muser_row_cell(row, head, dim, head_dim, out_rows, 0)] = float(v[n]);
    }
}

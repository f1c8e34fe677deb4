// Readers of a plane whose bits are the same on every machine (§15.6).
//
//   scan   scores -> weights -> mix: softmax denominator and P.V are summed
//          row after row, in ascending physical order.
//   lanes  scores -> lanes: rows are dealt to 32 lanes, each keeps an online
//          softmax, and the lanes are merged in order.
//
// What makes the bits travel: every multiply-add is one fma; no sum is left
// for a compiler to regroup or contract; exp is fma steps and an exact power
// of two; division is IEEE's. And in the scan no subnormal f32 arises, so that
// a machine which flushes them agrees:
//   - a query element under 2^-40 counts as 0, so scores are multiples of 2^-87
//     and, scaled and rounded, of 2^-114;
//   - a weight under exp(-40) counts as 0; the others are multiples of 2^-81,
//     f16 values of 2^-24, so sums of P.V are multiples of 2^-105.
//
// A live row i, counted in ascending physical order, is row i where i is
// below `low_rows` and row i + gap from there: a ring with unused rows has
// one gap, a full one none.
#include <metal_stdlib>
using namespace metal;

// exp(x) for x <= 0.
static inline float muser_exp(float x)
{
    if (x > -0x1p-26f) {
        return 1.0f;
    }
    if (x < -40.0f) {
        return 0.0f;
    }
    const float n = rint(x * 0x1.715476p+0f);
    float r = fma(n, -0x1.62e4p-1f, x);
    r = fma(n, -0x1.7f7d1cp-20f, r);
    float p = 0x1.a01a02p-13f;
    p = fma(p, r, 0x1.6c16c2p-10f);
    p = fma(p, r, 0x1.111112p-7f);
    p = fma(p, r, 0x1.555556p-5f);
    p = fma(p, r, 0x1.555556p-3f);
    p = fma(p, r, 0.5f);
    p = fma(p, r, 1.0f);
    p = fma(p, r, 1.0f);
    return p * as_type<float>(uint(int(n) + 127) << 23);
}

// Grid n_query_heads * rows: scores[head, i] = scale * (q . k of live row i).
kernel void muser_scores_f32(
    device const float *query      [[buffer(0)]],
    device const half *key_cache   [[buffer(1)]],
    device float *scores           [[buffer(2)]],
    constant uint &n_query_heads   [[buffer(3)]],
    constant uint &n_kv_heads      [[buffer(4)]],
    constant uint &head_dim        [[buffer(5)]],
    constant uint &capacity        [[buffer(6)]],
    constant uint &head_major      [[buffer(7)]],
    constant uint &rows            [[buffer(8)]],
    constant uint &low_rows        [[buffer(9)]],
    constant uint &gap             [[buffer(10)]],
    constant float &scale          [[buffer(11)]],
    uint thread_index              [[thread_position_in_grid]])
{
    if (thread_index >= n_query_heads * rows) {
        return;
    }
    const uint head = thread_index / rows;
    const uint i = thread_index % rows;
    const uint kv_head = head / (n_query_heads / n_kv_heads);
    const uint physical = i < low_rows ? i : i + gap;
    const uint first = head_major != 0
        ? (kv_head * capacity + physical) * head_dim
        : (physical * n_kv_heads + kv_head) * head_dim;

    float dot = 0.0f;
    for (uint dim = 0; dim < head_dim; ++dim) {
        const float q = query[head * head_dim + dim];
        dot = fma(fabs(q) < 0x1p-40f ? 0.0f : q, float(key_cache[first + dim]), dot);
    }
    scores[thread_index] = dot * scale;
}

// Grid n_query_heads: weights[head, i] = exp(score - the head's largest).
kernel void muser_weights_f32(
    device const float *scores     [[buffer(0)]],
    device float *weights          [[buffer(1)]],
    constant uint &n_query_heads   [[buffer(2)]],
    constant uint &rows            [[buffer(3)]],
    uint head                      [[thread_position_in_grid]])
{
    if (head >= n_query_heads) {
        return;
    }
    const uint first = head * rows;
    float largest = scores[first];
    for (uint i = 1; i < rows; ++i) {
        const float score = scores[first + i];
        largest = score > largest ? score : largest;
    }
    for (uint i = 0; i < rows; ++i) {
        weights[first + i] = muser_exp(scores[first + i] - largest);
    }
}

// Grid n_orders * n_query_heads * (head_dim / 16, rounded up): one thread sums
// 16 dims of one head. Order o begins at live row starts[o] and goes round;
// a plane read as it lies has the one order that starts at 0, and order s of a
// full ring is what the same rows give when they are turned back by s.
kernel void muser_mix_f32(
    device const float *weights    [[buffer(0)]],
    device const half *value_cache [[buffer(1)]],
    device const uint *starts      [[buffer(2)]],
    device float *attended         [[buffer(3)]],
    constant uint &n_orders        [[buffer(4)]],
    constant uint &n_query_heads   [[buffer(5)]],
    constant uint &n_kv_heads      [[buffer(6)]],
    constant uint &head_dim        [[buffer(7)]],
    constant uint &capacity        [[buffer(8)]],
    constant uint &head_major      [[buffer(9)]],
    constant uint &rows            [[buffer(10)]],
    constant uint &low_rows        [[buffer(11)]],
    constant uint &gap             [[buffer(12)]],
    uint thread_index              [[thread_position_in_grid]])
{
    const uint groups = (head_dim + 15) / 16;
    if (thread_index >= n_orders * n_query_heads * groups) {
        return;
    }
    const uint first_dim = 16 * (thread_index % groups);
    const uint dims = head_dim - first_dim < 16 ? head_dim - first_dim : 16;
    const uint head = thread_index / groups % n_query_heads;
    const uint order = thread_index / groups / n_query_heads;
    const uint kv_head = head / (n_query_heads / n_kv_heads);
    const uint stride = head_major != 0 ? head_dim : n_kv_heads * head_dim;
    const uint base = (head_major != 0 ? kv_head * capacity : kv_head) * head_dim + first_dim;

    float total = 0.0f;
    float sums[16];
    for (uint d = 0; d < 16; ++d) {
        sums[d] = 0.0f;
    }
    uint i = starts[order];
    for (uint step = 0; step < rows; ++step) {
        const float weight = weights[head * rows + i];
        const uint physical = i < low_rows ? i : i + gap;
        device const half *row = value_cache + base + physical * stride;
        total = total + weight;
        if (dims == 16) {
            for (uint d = 0; d < 16; ++d) {
                sums[d] = fma(weight, float(row[d]), sums[d]);
            }
        } else {
            for (uint d = 0; d < dims; ++d) {
                sums[d] = fma(weight, float(row[d]), sums[d]);
            }
        }
        i = i + 1 == rows ? 0 : i + 1;
    }
    const uint out = (order * n_query_heads + head) * head_dim + first_dim;
    for (uint d = 0; d < dims; ++d) {
        attended[out + d] = sums[d] / total;
    }
}

// Grid n_query_heads * head_dim: one thread sums one dim of one head. Lane l
// takes live rows l, l + 32, l + 64, ... and the lanes are merged from 0 up.
kernel void muser_lanes_f32(
    device const float *scores     [[buffer(0)]],
    device const half *value_cache [[buffer(1)]],
    device float *attended         [[buffer(2)]],
    constant uint &n_query_heads   [[buffer(3)]],
    constant uint &n_kv_heads      [[buffer(4)]],
    constant uint &head_dim        [[buffer(5)]],
    constant uint &capacity        [[buffer(6)]],
    constant uint &head_major      [[buffer(7)]],
    constant uint &rows            [[buffer(8)]],
    constant uint &low_rows        [[buffer(9)]],
    constant uint &gap             [[buffer(10)]],
    uint thread_index              [[thread_position_in_grid]])
{
    if (thread_index >= n_query_heads * head_dim) {
        return;
    }
    const uint head = thread_index / head_dim;
    const uint dim = thread_index % head_dim;
    const uint kv_head = head / (n_query_heads / n_kv_heads);
    const uint stride = head_major != 0 ? head_dim : n_kv_heads * head_dim;
    const uint base = (head_major != 0 ? kv_head * capacity : kv_head) * head_dim + dim;

    float largest = 0.0f;
    float total = 0.0f;
    float sum = 0.0f;
    for (uint lane = 0; lane < 32 && lane < rows; ++lane) {
        float lane_largest = scores[head * rows + lane];
        float lane_total = 0.0f;
        float lane_sum = 0.0f;
        for (uint i = lane; i < rows; i += 32) {
            const float score = scores[head * rows + i];
            const uint physical = i < low_rows ? i : i + gap;
            const float v = float(value_cache[base + physical * stride]);
            if (score > lane_largest) {
                const float fade = muser_exp(lane_largest - score);
                lane_total = fma(lane_total, fade, 1.0f);
                lane_sum = fma(lane_sum, fade, v);
                lane_largest = score;
            } else {
                const float weight = muser_exp(score - lane_largest);
                lane_total = lane_total + weight;
                lane_sum = fma(weight, v, lane_sum);
            }
        }
        if (lane == 0) {
            largest = lane_largest;
            total = lane_total;
            sum = lane_sum;
        } else if (lane_largest > largest) {
            const float fade = muser_exp(largest - lane_largest);
            total = fma(total, fade, lane_total);
            sum = fma(sum, fade, lane_sum);
            largest = lane_largest;
        } else {
            const float fade = muser_exp(lane_largest - largest);
            total = fma(lane_total, fade, total);
            sum = fma(lane_sum, fade, sum);
        }
    }
    attended[thread_index] = sum / total;
}

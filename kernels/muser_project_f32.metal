// Stand-in logits (§15.6): a seeded projection of what attention read, for
// lessons that have no model's weights.
//
// One thread per word of the vocabulary, grid n_vocab. A weight is made of its
// row, its column and the seed by integer mixing: a multiple of 2^-20 in
// [-2^-5, 2^-5). Inputs are summed in ascending order, one fma each; an input
// under 2^-40 counts as 0, so that no subnormal arises.
#include <metal_stdlib>
using namespace metal;

static inline uint muser_mix_bits(uint x)
{
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

kernel void muser_project_f32(
    device const float *attended   [[buffer(0)]],
    device float *logits           [[buffer(1)]],
    constant uint &n_inputs        [[buffer(2)]],
    constant uint &n_vocab         [[buffer(3)]],
    constant uint &seed            [[buffer(4)]],
    uint word                      [[thread_position_in_grid]])
{
    if (word >= n_vocab) {
        return;
    }
    const uint row = muser_mix_bits(word + muser_mix_bits(seed));
    float logit = 0.0f;
    for (uint i = 0; i < n_inputs; ++i) {
        const float x = attended[i];
        const uint bits = muser_mix_bits(row + i * 0x9e3779b9u);
        const float weight = float(int(bits >> 16) - 32768) * 0x1p-20f;
        logit = fma(fabs(x) < 0x1p-40f ? 0.0f : x, weight, logit);
    }
    logits[word] = logit;
}

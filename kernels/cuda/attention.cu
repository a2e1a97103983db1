// FusedAttention in tiles (attention_tiles.h). A lane has one key of the tile, later a few columns of the result. It keeps
// the largest score and the sum of exponentials as it goes along (Milakov, Gimelshein 2018).
#include "kernels/cuda/attention_tiles.h"

namespace stepscope::cuda {
inline namespace attention_cu {

// y: [heads, m, e], statistics?: [heads, m, 2], the largest score and 1 / sum of exponentials. One block per kRows rows.
SS_GLOBAL void attend(Global<const float> q, Global<const float> k, Global<const float> v, Masks masks, Kept kept,
                      Global<float> y, Global<float> statistics, Attention s) {
  SS_SHARED(float, qs, kRows* kMostWidth);
  SS_SHARED(float, ks, kTile* kPitch);
  SS_SHARED(float, vs, kTile* kPitch);
  SS_SHARED(float, ps, kRows* kTile);
  SS_SHARED(std::int64_t, lasts, kBlockThreads);
  SS_SHARED(std::int64_t, keysOfRows, 2 * kRows);
  const std::int64_t pieces = (s.m + kRows - 1) / kRows, head = gpu::blockIndex() / pieces,
                     firstRow = gpu::blockIndex() % pieces * kRows;
  const int lane = gpu::threadIndex() % 32, warp = gpu::threadIndex() / 32;
  const RandomKey drawn = s.drops ? keyOf(s.draw) : RandomKey{};
  std::int64_t at[kOperands];
  findHead(s, head, at);
  const std::int64_t rows = rowsOfHead(s, kept, head, lasts);
  const Keys keys = keysOfBlock(s, masks, at[kMask], firstRow, rows, keysOfRows);
  loadRows(qs, kMostWidth, q, at[kQ], firstRow, rows, kRows, s.d, s.strides[kQ]);
  float max[kRowsOfWarp], sum[kRowsOfWarp], out[kRowsOfWarp][kOwn];
  for (int r = 0; r < kRowsOfWarp; ++r) {
    max[r] = kLowest;
    sum[r] = 0;
    for (int o = 0; o < kOwn; ++o) out[r][o] = 0;
  }
  for (std::int64_t from = keys.begin; from < keys.end; from += kTile) {
    loadRows(ks, kPitch, k, at[kK], from, s.n, kTile, s.d, s.strides[kK]);
    loadRows(vs, kPitch, v, at[kV], from, s.n, kTile, s.e, s.strides[kV]);
    gpu::syncThreads();
    for (int r = 0; r < kRowsOfWarp; ++r) {
      const int row = warp * kRowsOfWarp + r;
      const std::int64_t i = firstRow + row, j = from + lane;
      if (i >= rows) continue;  // the whole warp
      float score = kLowest, slope = 1;
      if (j < s.n) score = scoreOf(s, masks, at[kMask], i, j, dot(qs, row, kMostWidth, ks, lane, kPitch, s.d), slope);
      const float largest = Larger::of(max[r], joinWarp<Larger>(score));
      // While all scores are -inf there is nothing to divide by.
      const float p = j < s.n && largest != kLowest ? expf(score - largest) : 0.0F;
      const float shrunk = max[r] == largest ? 1.0F : expf(max[r] - largest);
      sum[r] = sum[r] * shrunk + joinWarp<Plus>(p);
      max[r] = largest;
      ps[row * kTile + lane] = j < s.n ? p * keptFactor(s, drawn, head, i, j) : 0.0F;
      gpu::syncWarp();
      for (int o = 0; o < kOwn; ++o) {
        const int c = lane + 32 * o;
        if (c >= s.e) continue;
        float value = out[r][o] * shrunk;
        for (int t = 0; t < kTile && from + t < s.n; ++t) value += ps[row * kTile + t] * vs[t * kPitch + c];
        out[r][o] = value;
      }
    }
    gpu::syncThreads();  // before the next tile is loaded
  }
  for (int r = 0; r < kRowsOfWarp; ++r) {
    const std::int64_t i = firstRow + warp * kRowsOfWarp + r;
    if (i >= s.m) continue;
    const bool dead = i >= rows || (max[r] == kLowest && s.safe);
    const float factor = dead ? 0.0F : max[r] == kLowest ? max[r] - max[r] : 1.0F / sum[r];
    for (int o = 0; o < kOwn; ++o) {
      const int c = lane + 32 * o;
      if (c < s.e) y[at[kY] + i * s.strides[kY].row + c * s.strides[kY].column] = dead ? 0.0F : out[r][o] * factor;
    }
    if (lane != 0 || !statistics.present()) continue;
    statistics[2 * (head * s.m + i)] = dead ? 0.0F : max[r];
    statistics[2 * (head * s.m + i) + 1] = factor;
  }
}

}  // namespace attention_cu

// q, k, v, mask?, kept? → y, statistics?
Result<std::unique_ptr<Kernel>> makeFusedAttention(const KernelSpec& spec) {
  SS_ASSIGN(const Attention shape, attentionOf(spec, 0));
  const std::int64_t heads = shape.count, rows = heads * shape.m;
  if (!takesOutput(spec, 0) || elementCount(spec.outputs[0].dims) != rows * shape.e ||
      !takesOptionalOutput(spec, 1, 2 * rows))
    return notTaken(spec, "results of another size or type");
  const auto body = [=](Launcher& gpu) {
    Attention s = shape;
    s.draw = drawOf(gpu);
    const Masks masks = masksOf(gpu, s, 3);
    const Kept kept = keptOf(gpu, 4);
    return gpu.run("attention", gpu::function<attend>, heads * blocksFor(s.m, kRows), kBlockThreads, gpu.in<float>(0),
                   gpu.in<float>(1), gpu.in<float>(2), masks, kept, gpu.out<float>(0), gpu.out<float>(1), s);
  };
  return makeLaunched("attention in tiles", body, 0, determinismOf(shape));
}

}  // namespace stepscope::cuda

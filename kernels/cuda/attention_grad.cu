// The gradient of FusedAttention in tiles (attention_tiles.h). It computes the scores again, once for dq and once, by keys,
// for dk and dv, so that nothing is added atomically. For dk and dv the tiles of rows that drop the keys of a block are left
// out: what only they hold does not reach the result.
#include "kernels/cuda/attention_tiles.h"

namespace stepscope::cuda {
inline namespace attention_grad_cu {

// What the gradient makes of one score.
struct Slope {
  float p = 0, dp = 0;  // the probability, and the gradient of what it is after dropout
  float bend = 1;       // of the bounded score
};
template <typename A, typename B, typename C, typename D>
SS_DEVICE Slope slopeOf(const Attention& s, const RandomKey& drawn, const Masks& masks, std::int64_t begin,
                        std::int64_t head, std::int64_t i, std::int64_t j, float max, float factor, const A& qRows, int qRow,
                        const B& kRows, int kRow, const C& dyRows, const D& vRows) {
  Slope slope;
  const float score = scoreOf(s, masks, begin, i, j, dot(qRows, qRow, kPitch, kRows, kRow, kPitch, s.d), slope.bend);
  slope.p = expf(score - max) * factor;
  slope.dp = dot(dyRows, qRow, kPitch, vRows, kRow, kPitch, s.e) * keptFactor(s, drawn, head, i, j);
  return slope;
}

// dq: [heads, m, d], dots: [heads, m], the sum over keys of p · dp, tiles: [heads, m, 2], the first tile of keys that a row
// needs and the one behind the last. One block per kRows rows of q.
SS_GLOBAL void attendGradQueries(Global<const float> dy, Global<const float> statistics, Global<const float> q,
                                 Global<const float> k, Global<const float> v, Masks masks, Kept kept, Global<float> dq,
                                 Global<float> dots, Global<std::int32_t> tiles, Attention s) {
  SS_SHARED(float, qs, kRows* kPitch);
  SS_SHARED(float, dys, kRows* kPitch);
  SS_SHARED(float, ks, kTile* kPitch);
  SS_SHARED(float, vs, kTile* kPitch);
  SS_SHARED(float, ds, kRows* kTile);
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
  loadRows(qs, kPitch, q, at[kQ], firstRow, rows, kRows, s.d, s.strides[kQ]);
  loadRows(dys, kPitch, dy, at[kY], firstRow, rows, kRows, s.e, s.strides[kY]);
  float sums[kRowsOfWarp] = {}, out[kRowsOfWarp][kOwn] = {};
  for (int pass = 0; pass < 2; ++pass) {
    for (std::int64_t from = keys.begin; from < keys.end; from += kTile) {
      loadRows(ks, kPitch, k, at[kK], from, s.n, kTile, s.d, s.strides[kK]);
      loadRows(vs, kPitch, v, at[kV], from, s.n, kTile, s.e, s.strides[kV]);
      gpu::syncThreads();
      for (int r = 0; r < kRowsOfWarp; ++r) {
        const int row = warp * kRowsOfWarp + r;
        const std::int64_t i = firstRow + row, j = from + lane;
        if (i >= rows) continue;
        Slope slope;
        if (j < s.n)
          slope = slopeOf(s, drawn, masks, at[kMask], head, i, j, statistics[2 * (head * s.m + i)],
                          statistics[2 * (head * s.m + i) + 1], qs, row, ks, lane, dys, vs);
        if (pass == 0) {
          sums[r] += slope.p * slope.dp;
          continue;
        }
        const bool none = j >= s.n || isDropped(s, masks, at[kMask], i, j);
        ds[row * kTile + lane] = none ? 0.0F : slope.p * (slope.dp - sums[r]) * slope.bend * s.scale;
        gpu::syncWarp();
        for (int o = 0; o < kOwn; ++o) {
          const int c = lane + 32 * o;
          if (c >= s.d) continue;
          float value = out[r][o];
          for (int t = 0; t < kTile && from + t < s.n; ++t) value += ds[row * kTile + t] * ks[t * kPitch + c];
          out[r][o] = value;
        }
      }
      gpu::syncThreads();
    }
    if (pass == 0)
      for (int r = 0; r < kRowsOfWarp; ++r) sums[r] = joinWarp<Plus>(sums[r]);
  }
  for (int r = 0; r < kRowsOfWarp; ++r) {
    const std::int64_t i = firstRow + warp * kRowsOfWarp + r;
    if (i >= s.m) continue;
    for (int o = 0; o < kOwn; ++o) {
      const int c = lane + 32 * o;
      if (c < s.d) dq[at[kDq] + i * s.strides[kDq].row + c * s.strides[kDq].column] = out[r][o];
    }
    if (lane != 0) continue;
    dots[head * s.m + i] = sums[r];
    if (!tiles.present()) continue;
    const std::int64_t first = keysOfRows[2 * (i - firstRow)], last = keysOfRows[2 * (i - firstRow) + 1];
    tiles[2 * (head * s.m + i)] = static_cast<std::int32_t>(first / kTile);
    tiles[2 * (head * s.m + i) + 1] = static_cast<std::int32_t>((last + kTile - 1) / kTile);
  }
}

// dk: [heads / shared, n, d], dv: [heads / shared, n, e]. One block per kRows keys; a lane has one row of q.
SS_GLOBAL void attendGradKeys(Global<const float> dy, Global<const float> statistics, Global<const float> q,
                              Global<const float> k, Global<const float> v, Masks masks, Kept kept, Global<const float> dots,
                              Global<const std::int32_t> tiles, Global<float> dk, Global<float> dv, Attention s) {
  SS_SHARED(float, ks, kRows* kPitch);
  SS_SHARED(float, vs, kRows* kPitch);
  SS_SHARED(float, qs, kTile* kPitch);
  SS_SHARED(float, dys, kTile* kPitch);
  SS_SHARED(float, ps, kRows* kTile);
  SS_SHARED(float, ds, kRows* kTile);
  SS_SHARED(std::int64_t, lasts, kBlockThreads);
  const std::int64_t pieces = (s.n + kRows - 1) / kRows, firstHead = gpu::blockIndex() / pieces * s.shared,
                     firstKey = gpu::blockIndex() % pieces * kRows;
  const int lane = gpu::threadIndex() % 32, warp = gpu::threadIndex() / 32;
  const RandomKey drawn = s.drops ? keyOf(s.draw) : RandomKey{};
  std::int64_t at[kOperands];
  findHead(s, firstHead, at);
  loadRows(ks, kPitch, k, at[kK], firstKey, s.n, kRows, s.d, s.strides[kK]);
  loadRows(vs, kPitch, v, at[kV], firstKey, s.n, kRows, s.e, s.strides[kV]);
  float toK[kRowsOfWarp][kOwn] = {}, toV[kRowsOfWarp][kOwn] = {};
  const std::int64_t rows = rowsOfHead(s, kept, firstHead, lasts);  // heads that share keys are of one entry
  for (int other = 0; other < s.shared; ++other) {
    const std::int64_t head = firstHead + other;
    findHead(s, head, at);
    for (std::int64_t from = 0; from < rows; from += kTile) {
      if (tiles.present()) {
        const std::int64_t i = head * s.m + from + lane, tile = firstKey / kTile;  // a block's keys are of one tile
        const bool needs = from + lane < rows && static_cast<std::int32_t>(tiles[2 * i]) <= tile &&
                           tile < static_cast<std::int32_t>(tiles[2 * i + 1]);
        if (!gpu::syncThreadsOr(needs)) continue;
      }
      loadRows(qs, kPitch, q, at[kQ], from, rows, kTile, s.d, s.strides[kQ]);
      loadRows(dys, kPitch, dy, at[kY], from, rows, kTile, s.e, s.strides[kY]);
      gpu::syncThreads();
      for (int r = 0; r < kRowsOfWarp; ++r) {
        const int row = warp * kRowsOfWarp + r;
        const std::int64_t j = firstKey + row, i = from + lane;
        if (j >= s.n) continue;
        float p = 0, slopeOfScore = 0;
        if (i < rows) {
          const Slope slope = slopeOf(s, drawn, masks, at[kMask], head, i, j, statistics[2 * (head * s.m + i)],
                                      statistics[2 * (head * s.m + i) + 1], qs, lane, ks, row, dys, vs);
          p = slope.p * keptFactor(s, drawn, head, i, j);
          if (!isDropped(s, masks, at[kMask], i, j))
            slopeOfScore = slope.p * (slope.dp - dots[head * s.m + i]) * slope.bend * s.scale;
        }
        ps[row * kTile + lane] = p;
        ds[row * kTile + lane] = slopeOfScore;
        gpu::syncWarp();
        for (int o = 0; o < kOwn; ++o) {
          const int c = lane + 32 * o;
          float key = toK[r][o], value = toV[r][o];
          for (int t = 0; t < kTile && from + t < rows; ++t) {
            if (c < s.d) key += ds[row * kTile + t] * qs[t * kPitch + c];
            if (c < s.e) value += ps[row * kTile + t] * dys[t * kPitch + c];
          }
          toK[r][o] = key;
          toV[r][o] = value;
        }
      }
      gpu::syncThreads();
    }
  }
  for (int r = 0; r < kRowsOfWarp; ++r) {
    const std::int64_t j = firstKey + warp * kRowsOfWarp + r;
    if (j >= s.n) continue;
    for (int o = 0; o < kOwn; ++o) {
      const int c = lane + 32 * o;
      if (c < s.d) dk[at[kDk] + j * s.strides[kDk].row + c * s.strides[kDk].column] = toK[r][o];
      if (c < s.e) dv[at[kDv] + j * s.strides[kDv].row + c * s.strides[kDv].column] = toV[r][o];
    }
  }
}

}  // namespace attention_grad_cu

// dy, statistics, q, k, v, mask?, kept? → dq, dk, dv
Result<std::unique_ptr<Kernel>> makeFusedAttentionGrad(const KernelSpec& spec) {
  SS_ASSIGN(const Attention shape, attentionOf(spec, 2));
  const std::int64_t heads = shape.count, rows = heads * shape.m;
  if (!takesInput(spec, 0) || elementCount(spec.inputs[0].dims) != rows * shape.e || !takesInput(spec, 1) ||
      elementCount(spec.inputs[1].dims) != 2 * rows)
    return notTaken(spec, "statistics or a gradient of another size or type");
  const std::int64_t own = heads / shape.shared,
                     sizes[3] = {rows * shape.d, own * shape.n * shape.d, own * shape.n * shape.e};
  for (std::size_t o = 0; o < 3; ++o)
    if (!takesOutput(spec, o) || elementCount(spec.outputs[o].dims) != sizes[o])
      return notTaken(spec, "results of another size or type");
  // dots, and the tiles of keys that rows need
  const std::size_t dotBytes = static_cast<std::size_t>(rows) * sizeof(float),
                    tileBytes = shape.skips ? 2 * static_cast<std::size_t>(rows) * sizeof(std::int32_t) : 0;
  const auto body = [=](Launcher& gpu) -> Status {
    Attention s = shape;
    s.draw = drawOf(gpu);
    Masks masks = masksOf(gpu, s, 5);
    Kept kept = keptOf(gpu, 6);
    Global<std::int32_t> tiles;
    if (s.skips) tiles = gpu.room<std::int32_t>(dotBytes, 2 * rows);
    SS_TRY(gpu.run("attention gradient: queries", gpu::function<attendGradQueries>, heads * blocksFor(s.m, kRows),
                   kBlockThreads, gpu.in<float>(0), gpu.in<float>(1), gpu.in<float>(2), gpu.in<float>(3), gpu.in<float>(4),
                   masks, kept, gpu.out<float>(0), gpu.room<float>(0, rows), tiles, s));
    masks = masksOf(gpu, s, 5);  // operands belong to one launch
    kept = keptOf(gpu, 6);
    Global<const std::int32_t> needed;
    if (s.skips) needed = gpu.readRoom<std::int32_t>(dotBytes, 2 * rows);
    return gpu.run("attention gradient: keys", gpu::function<attendGradKeys>, heads / s.shared * blocksFor(s.n, kRows),
                   kBlockThreads, gpu.in<float>(0), gpu.in<float>(1), gpu.in<float>(2), gpu.in<float>(3), gpu.in<float>(4),
                   masks, kept, gpu.readRoom<float>(0, rows), needed, gpu.out<float>(1), gpu.out<float>(2), s);
  };
  return makeLaunched("attention in tiles", body, dotBytes + tileBytes, determinismOf(shape));
}

}  // namespace stepscope::cuda

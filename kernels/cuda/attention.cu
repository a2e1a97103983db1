// FusedAttention and its gradient (contract in kernels/attention_shape.h) without the matrix of scores. A block has a few
// rows of q and goes along k and v in tiles that lie in shared memory; a lane has one key of the tile, later a few columns
// of the result. Forward keeps the largest score and the sum of exponentials as it goes along (Milakov, Gimelshein 2018).
// Rows of q behind the last one that is kept of a batch entry are left out: every block counts those of its entry. Tiles of
// keys at either end that a mask drops in all rows of a block are left out as well (padding, causal masks), and for the
// gradient of keys the tiles of rows that drop them: what only they hold does not reach the result.
// The gradient computes the scores again, once for dq and once, by keys, for dk and dv, so that nothing is added atomically.
#include <algorithm>
#include <limits>

#include "kernels/attention_shape.h"
#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/philox.h"
#include "kernels/cuda/support.h"
#include "kernels/cuda/walk.h"
#include "kernels/dropout_threshold.h"

namespace stepscope::cuda {
inline namespace attention_cu {

constexpr int kRowsOfWarp = 2, kRows = 4 * kRowsOfWarp;  // of a block, which has four warps
constexpr int kBlockThreads = 128;
constexpr int kTile = 32;        // rows of the other operands that are in shared memory: one for each lane
constexpr int kMostWidth = 128;  // extents d and e
constexpr int kPitch = kMostWidth + 1;
constexpr int kOwn = kMostWidth / 32;  // columns of a lane
constexpr float kLowest = -std::numeric_limits<float>::infinity();

// Strides of a matrix in memory.
struct Strides {
  std::int64_t row = 1, column = 1;
};
enum Operand { kQ, kK, kV, kY, kMask, kDq, kDk, kDv, kOperands };  // the gradient of y lies like y

struct Attention {
  Walk<kOperands> heads;
  std::int64_t count = 1;  // of heads
  std::int64_t m = 0, n = 0;
  int d = 0, e = 0;
  Strides strides[kOperands];
  std::int64_t start[kOperands] = {};  // of the first element
  int shared = 1;                      // heads that have keys and values in common
  std::int64_t headsOfEntry = 1;       // of the first leading axis
  float scale = 1, fill = 0, softcap = 0;
  bool bools = false, invert = false, safe = false;
  bool skips = false;  // a mask may leave exactly nothing of a score
  bool drops = false;  // dropout
  float threshold = 0, keptScale = 1;
  Draw draw;
};
// Numbers of rows that are kept, K of them; not present: all rows are computed.
struct Kept {
  Global<const std::int64_t> numbers;
  std::int64_t count = 0;
};
struct Masks {
  Global<const float> added;
  Global<const std::uint8_t> kept;
};

// Where the operands of a head begin.
SS_DEVICE void findHead(const Attention& s, std::int64_t head, std::int64_t (&at)[kOperands]) {
  s.heads.offsets(head, at);
  for (int o = 0; o < kOperands; ++o) at[o] += s.start[o];
}

// Rows of a head that are computed; all threads of the block ask. `lasts`: kBlockThreads numbers of shared memory.
template <typename S>
SS_DEVICE std::int64_t rowsOfHead(const Attention& s, const Kept& kept, std::int64_t head, S& lasts) {
  if (!kept.numbers.present()) return s.m;
  const std::int64_t begin = head / s.headsOfEntry * s.m;
  std::int64_t own = 0;
  for (std::int64_t k = gpu::threadIndex(); k < kept.count; k += kBlockThreads) {
    const std::int64_t row = static_cast<std::int64_t>(kept.numbers[k]) - begin;
    if (row >= own && row < s.m) own = row + 1;
  }
  lasts[gpu::threadIndex()] = own;
  gpu::syncThreads();
  std::int64_t rows = 0;
  for (int t = 0; t < kBlockThreads; ++t) {
    const std::int64_t last = lasts[t];
    if (last > rows) rows = last;
  }
  gpu::syncThreads();
  return rows;
}

// From begin, the first of a tile, to end.
struct Keys {
  std::int64_t begin = 0, end = 0;
};

// The tiles from the first to the last of which row i keeps a key; all where the mask drops none, or every key. Whole warps
// ask.
SS_DEVICE Keys keysOfRow(const Attention& s, const Masks& masks, std::int64_t begin, std::int64_t i) {
  Keys keys{0, s.n};
  if (!s.skips) return keys;
  const auto keeps = [&](std::int64_t j) {
    if (j >= s.n) return false;
    const std::int64_t at = begin + i * s.strides[kMask].row + j * s.strides[kMask].column;
    if (s.bools) return (static_cast<std::uint8_t>(masks.kept[at]) != 0) != s.invert;
    return !(static_cast<float>(masks.added[at]) <= kDroppedScore);
  };
  const int lane = gpu::threadIndex() % 32;
  while (keys.end > 0) {
    const std::int64_t tile = (keys.end - 1) / kTile * kTile;
    if (gpu::ballot(keeps(tile + lane)) != 0) break;
    keys.end = tile;
  }
  if (keys.end == 0) return {0, s.n};
  while (gpu::ballot(keeps(keys.begin + lane)) == 0) keys.begin += kTile;
  return keys;
}

// Those of the rows of a block that are computed. `own`: [kRows, 2] in shared memory, those of each row.
template <typename S>
SS_DEVICE Keys keysOfBlock(const Attention& s, const Masks& masks, std::int64_t begin, std::int64_t firstRow,
                           std::int64_t rows, S& own) {
  for (int r = 0; r < kRowsOfWarp; ++r) {
    const int row = gpu::threadIndex() / 32 * kRowsOfWarp + r;
    Keys keys{s.n, 0};
    if (firstRow + row < rows) keys = keysOfRow(s, masks, begin, firstRow + row);  // the whole warp
    if (gpu::threadIndex() % 32 != 0) continue;
    own[2 * row] = keys.begin;
    own[2 * row + 1] = keys.end;
  }
  gpu::syncThreads();
  Keys all{s.n, 0};
  for (int row = 0; row < kRows; ++row) {
    const std::int64_t first = own[2 * row], last = own[2 * row + 1];
    if (first < all.begin) all.begin = first;
    if (last > all.end) all.end = last;
  }
  return all;
}

template <typename Join>
SS_DEVICE float joinWarp(float value) {
  for (int lanes = 16; lanes > 0; lanes /= 2) value = Join::of(value, gpu::shuffleXor(value, lanes));
  return value;
}

// to[count, pitch] = rows first … of x; zeros behind the last one.
template <typename S>
SS_DEVICE void loadRows(S& to, int pitch, const Global<const float>& x, std::int64_t begin, std::int64_t first,
                        std::int64_t rows, int count, int width, const Strides& strides) {
  for (int i = gpu::threadIndex(); i < count * width; i += kBlockThreads) {
    const int r = i / width, c = i % width;
    float value = 0;
    if (first + r < rows) value = x[begin + (first + r) * strides.row + c * strides.column];
    to[r * pitch + c] = value;
  }
}

template <typename A, typename B>
SS_DEVICE float dot(const A& a, int row, int pitch, const B& b, int other, int otherPitch, int width) {
  float sum = 0;
  for (int c = 0; c < width; ++c) sum += a[row * pitch + c] * b[other * otherPitch + c];
  return sum;
}

// Whether a bool mask drops the score.
SS_DEVICE bool isDropped(const Attention& s, const Masks& masks, std::int64_t begin, std::int64_t i, std::int64_t j) {
  return s.bools && (static_cast<std::uint8_t>(masks.kept[begin + i * s.strides[kMask].row + j * s.strides[kMask].column]) !=
                     0) == s.invert;
}
// The score, bounded and masked; `slope`: of what is bounded by the scaled product.
SS_DEVICE float scoreOf(const Attention& s, const Masks& masks, std::int64_t begin, std::int64_t i, std::int64_t j,
                        float product, float& slope) {
  float score = product * s.scale;
  slope = 1;
  if (s.softcap > 0) {
    const float bent = tanhf(score / s.softcap);
    score = s.softcap * bent;
    slope = 1.0F - bent * bent;
  }
  if (masks.added.present()) return score + masks.added[begin + i * s.strides[kMask].row + j * s.strides[kMask].column];
  return isDropped(s, masks, begin, i, j) ? s.fill : score;
}

// The factor of an element of the probabilities; 0 where dropout leaves it out.
SS_DEVICE float keptFactor(const Attention& s, const RandomKey& drawn, std::int64_t head, std::int64_t i, std::int64_t j) {
  if (!s.drops) return 1;
  const std::uint64_t element = static_cast<std::uint64_t>((head * s.m + i) * s.n + j);
  const Words words = randomWords(drawn, element / 4);
  const std::uint32_t at = static_cast<std::uint32_t>(element % 4);
  const std::uint32_t word = at == 0 ? words.word[0] : at == 1 ? words.word[1] : at == 2 ? words.word[2] : words.word[3];
  return uniformOf(word) >= s.threshold ? s.keptScale : 0.0F;
}

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

// q, k, v, mask? are the inputs from `first` on.
Result<Attention> attentionOf(const KernelSpec& spec, std::size_t first) {
  if (spec.inputs.size() < first + 3) return notTaken(spec, "too few operands");
  for (std::size_t i = first; i < first + 3; ++i)
    if (!takesInput(spec, i)) return notTaken(spec, "elements other than float32");
  const bool masked = spec.inputPresent(first + 3);
  if (masked && !takesInput(spec, first + 3) && !takesInput(spec, first + 3, DType::kBool))
    return notTaken(spec, "a mask of another type");
  const auto& in = spec.inputs;
  SS_ASSIGN(const AttentionShape shape, attentionShape(in[first].dims, in[first + 1].dims, in[first + 2].dims,
                                                       masked ? &in[first + 3].dims : nullptr, spec.attrs));
  if (shape.d() > kMostWidth || shape.e() > kMostWidth) return notTaken(spec, "heads wider than 128");
  Attention s;
  s.count = shape.heads();
  s.m = shape.m(), s.n = shape.n();
  s.d = static_cast<int>(shape.d()), s.e = static_cast<int>(shape.e());
  s.strides[kQ] = {shape.scores.aRow, shape.scores.aColumn};
  s.strides[kK] = {shape.scores.bColumn, shape.scores.bRow};
  s.strides[kV] = {shape.context.bRow, shape.context.bColumn};
  s.strides[kY] = {shape.context.yRow, shape.context.yColumn};
  s.strides[kMask] = {shape.maskRow, shape.maskColumn};
  SS_ASSIGN(const AttentionShape dense,
            attentionGradientShape(in[first].dims, in[first + 1].dims, in[first + 2].dims, spec.attrs));
  s.strides[kDq] = {dense.scores.aRow, dense.scores.aColumn};
  s.strides[kDk] = {dense.scores.bColumn, dense.scores.bRow};
  s.strides[kDv] = {dense.context.bRow, dense.context.bColumn};
  s.start[kQ] = shape.scores.aStart, s.start[kK] = shape.scores.bStart, s.start[kV] = shape.context.bStart;
  for (std::size_t a = 0; a < shape.scores.batch.size(); ++a) {
    const std::int64_t strides[kOperands] = {
        shape.scores.aStrides[a], shape.scores.bStrides[a], shape.context.bStrides[a], shape.context.yStrides[a],
        shape.maskLead[a],        dense.scores.aStrides[a], dense.scores.bStrides[a],  dense.context.bStrides[a],
    };
    if (!s.heads.add(shape.scores.batch[a], strides)) return notTaken(spec, "more than eight leading axes");
  }
  s.scale = shape.scale, s.fill = shape.fill, s.softcap = shape.softcap;
  s.shared = static_cast<int>(shape.shared);
  s.headsOfEntry = shape.heads() / std::max<std::int64_t>(1, shape.entries());
  if (spec.inputPresent(first + 4)) {
    if (!takesInput(spec, first + 4, DType::kI64)) return notTaken(spec, "kept rows of another type");
    if (shape.scores.batch.size() < 2) return notTaken(spec, "kept rows and one leading axis");
  }
  s.bools = masked && in[first + 3].dtype == DType::kBool;
  s.invert = shape.invert, s.safe = shape.safe;
  s.skips = masked && !(s.bools && s.fill > kDroppedScore);
  s.drops = shape.dropout > 0;
  s.threshold = dropoutThreshold(shape.dropout);
  s.keptScale = static_cast<float>(1 / (1 - shape.dropout));
  return s;
}

Masks masksOf(Launcher& gpu, const Attention& s, std::size_t input) {
  if (!gpu.call().inputPresent(input)) return {};
  if (s.bools) return {{}, gpu.in<std::uint8_t>(input)};
  return {gpu.in<float>(input), {}};
}

Kept keptOf(Launcher& gpu, std::size_t input) {
  if (!gpu.call().inputPresent(input)) return {};
  return {gpu.in<std::int64_t>(input), gpu.call().inputs[input].elements()};
}

Determinism determinismOf(const Attention& s) {
  return s.drops ? Determinism::keyedRandom() : Determinism::fixed("every row is summed in the order of the tiles");
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

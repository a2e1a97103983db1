// What FusedAttention (attention.cu) and its gradient (attention_grad.cu) share: how operands lie, which rows and keys are
// computed, and one score (contract in kernels/attention_shape.h). Neither has the matrix of scores: a block has a few rows
// of one operand and goes along the others in tiles that lie in shared memory; a lane has one row of the tile.
//
// Rows of q behind the last one that is kept of a batch entry are left out: every block counts those of its entry. Tiles of
// keys at either end that a mask drops in all rows of a block are left out as well (padding, causal masks).
#pragma once

#include <algorithm>
#include <limits>

#include "kernels/attention_shape.h"
#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/philox.h"
#include "kernels/cuda/support.h"
#include "kernels/cuda/walk.h"
#include "kernels/dropout_threshold.h"

namespace stepscope::cuda {
inline namespace attention_tiles {

inline constexpr int kRowsOfWarp = 2, kRows = 4 * kRowsOfWarp;  // of a block, which has four warps
inline constexpr int kBlockThreads = 128;
inline constexpr int kTile = 32;        // rows of the other operands that are in shared memory: one for each lane
inline constexpr int kMostWidth = 128;  // extents d and e
inline constexpr int kPitch = kMostWidth + 1;
inline constexpr int kOwn = kMostWidth / 32;  // columns of a lane
inline constexpr float kLowest = -std::numeric_limits<float>::infinity();

// Strides of a matrix in memory.
struct Strides {
  std::int64_t row = 1, column = 1;
};
// Of which a node has places in memory.
enum Operand { kQ, kK, kV, kY, kMask, kDq, kDk, kDv, kOperands };  // the gradient of y lies like y

// What the kernels need to know of a node.
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
// One of them, or none: a mask that is added to scores, or bools of which the node says what they keep.
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

// q, k, v, mask? are the inputs from `first` on.
inline Result<Attention> attentionOf(const KernelSpec& spec, std::size_t first) {
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

inline Masks masksOf(Launcher& gpu, const Attention& s, std::size_t input) {
  if (!gpu.call().inputPresent(input)) return {};
  if (s.bools) return {{}, gpu.in<std::uint8_t>(input)};
  return {gpu.in<float>(input), {}};
}

inline Kept keptOf(Launcher& gpu, std::size_t input) {
  if (!gpu.call().inputPresent(input)) return {};
  return {gpu.in<std::int64_t>(input), gpu.call().inputs[input].elements()};
}

inline Determinism determinismOf(const Attention& s) {
  return s.drops ? Determinism::keyedRandom() : Determinism::fixed("every row is summed in the order of the tiles");
}

}  // namespace attention_tiles
}  // namespace stepscope::cuda

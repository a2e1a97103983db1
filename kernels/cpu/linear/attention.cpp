// Attention without the matrix of scores: tiles of rows that stay in a cache, each against all keys that its mask keeps.
//
// Algorithm   FlashAttention-2 (Dao, 2023) with whole rows of scores, so that a softmax is computed as it is elsewhere: no
//             running maximum.
// Forward     A tile: S = cap(scale q k^T) + mask, y = softmax(S) v; the maximum and 1 / sum of every row are kept.
// Gradient    Tile by tile, heads that share keys by one thread: P = exp(S - maximum) / sum, dv += (P D)^T dy, dP = (dy v^T)
// D,
//             dS = P (dP - rowsum(P dP)), dq = scale dS k, dk += scale dS^T q. D: the factors of dropout, drawn again.
// Memory      m x n is never stored: one tile per thread forward, two and the bytes of D backward, three with a softcap.
// Masks       Columns at either end that the mask drops in every row of a tile are not computed (causal masks, padding):
//             their P is exactly 0. What only they hold, NaN included, does not reach the result.
// Rows        Those behind the last one that is kept of a batch entry are not computed either.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "kernels/attention_shape.h"
#include "kernels/cpu/dnnl_support.h"
#include "kernels/cpu/linear/linear_kernels.h"
#include "kernels/cpu/loops/draws.h"
#include "kernels/cpu/loops/support.h"
#include "kernels/dropout_threshold.h"

namespace stepscope::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kDropped = -1e30F;  // a mask at or below it leaves exactly nothing of a score
constexpr std::int64_t kSumBlock = 1024;

// --- rows

SS_CLONES void addRow(const float* mask, std::int64_t step, float* x, std::int64_t n) {
  if (step == 0) {
    const float all = mask[0];
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j) x[j] += all;
  } else {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j) x[j] += mask[j];
  }
}

// `value` where the mask drops.
SS_CLONES void fillRow(const std::uint8_t* mask, std::int64_t step, bool invert, float value, float* x, std::int64_t n) {
  const std::int32_t dropped = invert ? 1 : 0;
  if (step == 0) {
    if (static_cast<std::int32_t>(mask[0] != 0) == dropped) std::fill_n(x, n, value);
    return;
  }
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) {
    const float own = x[j];
    x[j] = static_cast<std::int32_t>(mask[j] != 0) != dropped ? own : value;
  }
}

// x = cap tanh(x / cap); its slope, where there is room for it.
SS_CLONES void capRow(float cap, float* x, float* slope, std::int64_t n) {
  const float inverse = 1 / cap;
  if (slope == nullptr) {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j) x[j] = cap * tanhOf(x[j] * inverse);
    return;
  }
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) {
    const float bent = tanhOf(x[j] * inverse);
    x[j] = cap * bent;
    slope[j] = 1 - bent * bent;
  }
}

SS_CLONES void multiplyRow(const float* factors, float* x, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) x[j] *= factors[j];
}

SS_CLONES float largestOf(const float* x, std::int64_t n) {
  float max = -kInfinity;
#pragma omp simd reduction(max : max)
  for (std::int64_t j = 0; j < n; ++j) max = x[j] > max ? x[j] : max;
  return max;
}

// x = exp(x - shift); their sum.
SS_CLONES float powersOf(float shift, float* x, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < n; ++j) {
    const float power = expOf(x[j] - shift);
    x[j] = power;
    sum += power;
  }
  return sum;
}

SS_CLONES float dotOf(const float* a, const float* b, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < n; ++j) sum += a[j] * b[j];
  return sum;
}

SS_CLONES void scoreGradient(const float* p, float dot, float* dp, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) dp[j] = p[j] * (dp[j] - dot);
}

SS_CLONES void scaleRow(float factor, float* x, std::int64_t step, std::int64_t n) {
  if (step == 1) {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j) x[j] *= factor;
  } else {
    for (std::int64_t j = 0; j < n; ++j) x[j * step] *= factor;
  }
}

// Which of n elements from `element` on stay.
SS_CLONES void drawRow(const RandomKey& key, std::uint64_t element, float threshold, std::uint8_t* kept, std::int64_t n) {
  std::array<std::uint32_t, 256> words;
  for (std::int64_t at = 0; at < n;) {
    const std::uint64_t from = element + static_cast<std::uint64_t>(at);
    const auto skip = static_cast<std::int64_t>(from % 4);
    drawWords(key, from / 4, words);
    const std::int64_t take = std::min<std::int64_t>(static_cast<std::int64_t>(words.size()) - skip, n - at);
    for (std::int64_t j = 0; j < take; ++j) kept[at + j] = uniformOf(words[static_cast<std::size_t>(skip + j)]) >= threshold;
    at += take;
  }
}

SS_CLONES void keepRow(const std::uint8_t* kept, float factor, float* x, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) {
    const float scaled = x[j] * factor;
    x[j] = kept[j] != 0 ? scaled : 0.0F;
  }
}

template <typename Of>
double sumInBlocks(std::int64_t n, Of&& of) {
  double sum = 0;
  for (std::int64_t at = 0; at < n; at += kSumBlock) sum += static_cast<double>(of(at, std::min(kSumBlock, n - at)));
  return sum;
}

// --- products of matrices with a stride per axis, one of them 1

template <typename T>
struct Strided {
  T* data;
  std::int64_t row, column;
  Strided turned() const { return {data, column, row}; }
  Strided rowsFrom(std::int64_t first) const { return {data + first * row, row, column}; }
};
using Operand = Strided<const float>;

// c [m, n] = alpha a [m, k] b [k, n] + beta c.
dnnl_status_t multiply(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Operand a, Operand b, float beta,
                       Strided<float> c) {
  if (c.column != 1) return multiply(n, m, k, alpha, b.turned(), a.turned(), beta, c.turned());
  const bool transA = a.column != 1, transB = b.column != 1;
  return dnnl_sgemm(transA ? 'T' : 'N', transB ? 'T' : 'N', m, n, k, alpha, a.data, transA ? a.column : a.row, b.data,
                    transB ? b.column : b.row, beta, c.data, c.row);
}

// Whether the library reads rows x columns with these strides.
bool packs(std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) {
  return (column == 1 && row >= columns) || (row == 1 && column >= rows);
}

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

void clear(const Strided<float>& c, std::int64_t rows, std::int64_t columns) {
  const bool byRows = c.column == 1;
  for (std::int64_t i = 0; i < (byRows ? rows : columns); ++i)
    std::fill_n(c.data + i * (byRows ? c.row : c.column), byRows ? columns : rows, 0.0F);
}

// What both directions share: one head's part of the operands, and a tile of its probabilities.
class AttentionPlan {
 public:
  AttentionPlan(AttentionShape shape, DType mask, int threads) : s_(std::move(shape)), mask_(mask), threads_(threads) {
    // Two tiles fit a second-level cache of half a megabyte.
    constexpr std::int64_t kTileFloats = 48 << 10;
    rows_ = std::min(s_.m(), std::clamp<std::int64_t>(kTileFloats / std::max<std::int64_t>(1, s_.n()) / 16 * 16, 16, 128));
  }

  const AttentionShape& shape() const { return s_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t tiles() const { return (s_.m() + rows_ - 1) / rows_; }
  int threads() const { return threads_; }
  float keptFactor() const { return static_cast<float>(1 / (1 - s_.dropout)); }
  float threshold() const { return dropoutThreshold(s_.dropout); }

  Operand query(const KernelCall& call, std::size_t i, std::int64_t head) const {
    return {input(call, i) + s_.scores.aOffset(head), s_.scores.aRow, s_.scores.aColumn};
  }
  Operand keys(const KernelCall& call, std::size_t i, std::int64_t head) const {  // [d, n]
    return {input(call, i) + s_.scores.bOffset(head), s_.scores.bRow, s_.scores.bColumn};
  }
  Operand values(const KernelCall& call, std::size_t i, std::int64_t head) const {  // [n, e]
    return {input(call, i) + s_.context.bOffset(head), s_.context.bRow, s_.context.bColumn};
  }

  // At the beginning of the workspace: how many rows of each batch entry are computed.
  std::size_t countBytes() const { return (static_cast<std::size_t>(s_.entries()) * sizeof(std::int64_t) + 63) / 64 * 64; }
  // `kept`: the input that names the rows that are.
  Result<std::span<const std::int64_t>> countRows(const KernelCall& call, std::size_t kept) const {
    const std::span counts(reinterpret_cast<std::int64_t*>(call.workspace.data()), static_cast<std::size_t>(s_.entries()));
    std::ranges::fill(counts, s_.m());
    if (call.inputPresent(kept)) SS_TRY(countKeptRows(s_, call.inputs[kept].as<std::int64_t>(), counts));
    return counts;
  }
  std::int64_t rowsOf(std::span<const std::int64_t> counts, std::int64_t head) const {
    return counts[static_cast<std::size_t>(head / (s_.heads() / s_.entries()))];
  }

  // The columns that some row of the tile keeps; all where a row keeps none, whose softmax is not 0 anywhere.
  Range columns(const TensorView* mask, std::int64_t head, Range tile) const {
    const Range all{0, s_.n()};
    if (mask_ == DType::kUndefined || s_.maskColumn != 1 || (mask_ == DType::kBool && s_.fill > kDropped)) return all;
    Range kept{s_.n(), 0};
    const std::int64_t rows = s_.maskRow == 0 ? 1 : tile.size();
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t at = s_.maskOffset(head) + (tile.begin + i) * s_.maskRow;
      const auto keeps = [&](std::int64_t j) {
        return mask_ == DType::kBool ? (static_cast<const std::uint8_t*>(mask->data)[at + j] != 0) != s_.invert
                                     : !(static_cast<const float*>(mask->data)[at + j] <= kDropped);
      };
      std::int64_t first = 0, last = s_.n();
      while (last > 0 && !keeps(last - 1)) --last;
      if (last == 0) return all;
      while (!keeps(first)) ++first;
      kept = {std::min(kept.begin, first), std::max(kept.end, last)};
    }
    return kept;
  }

  // scores [tile, columns], row-major with `columns.size()` floats to a row. `slopes`: as large, of bounded scores by the
  // products; null where they are not wanted.
  dnnl_status_t scores(const Operand& q, const Operand& k, const TensorView* mask, std::int64_t head, Range tile,
                       Range columns, float* x, float* slopes = nullptr) const {
    const Operand some{k.data + columns.begin * k.column, k.row, k.column};
    const dnnl_status_t status =
        multiply(tile.size(), columns.size(), s_.d(), s_.scale, q.rowsFrom(tile.begin), some, 0, {x, columns.size(), 1});
    if (s_.softcap > 0 && status == dnnl_success) capRow(s_.softcap, x, slopes, tile.size() * columns.size());
    if (!mask || status != dnnl_success) return status;
    for (std::int64_t i = 0; i < tile.size(); ++i) {
      float* row = x + i * columns.size();
      const std::int64_t at = maskAt(head, tile.begin + i, columns);
      if (mask_ == DType::kBool)
        fillRow(static_cast<const std::uint8_t*>(mask->data) + at, s_.maskColumn, s_.invert, s_.fill, row, columns.size());
      else
        addRow(static_cast<const float*>(mask->data) + at, s_.maskColumn, row, columns.size());
    }
    return status;
  }

  // No gradient passes where a bool mask put another number in the place of the score.
  void stopAtDropped(const TensorView* mask, std::int64_t head, std::int64_t row, Range columns, float* dx) const {
    if (!mask || mask_ != DType::kBool) return;
    fillRow(static_cast<const std::uint8_t*>(mask->data) + maskAt(head, row, columns), s_.maskColumn, s_.invert, 0, dx,
            columns.size());
  }

  void draw(const RandomKey& key, std::int64_t head, std::int64_t row, Range columns, std::uint8_t* kept) const {
    const auto element = static_cast<std::uint64_t>((head * s_.m() + row) * s_.n() + columns.begin);
    drawRow(key, element, threshold(), kept, columns.size());
  }

 private:
  std::int64_t maskAt(std::int64_t head, std::int64_t row, Range columns) const {
    return s_.maskOffset(head) + row * s_.maskRow + columns.begin * s_.maskColumn;
  }

  AttentionShape s_;
  DType mask_;  // kUndefined: none
  int threads_;
  std::int64_t rows_ = 1;
};

// `first`: the input that is q; the mask is the third after it. Errors: what the fast kernel does not take.
Result<AttentionPlan> planOf(const KernelSpec& spec, std::size_t first, const Dims& q, const Dims& k, const Dims& v) {
  const bool masked = spec.inputPresent(first + 3);
  const OperandSpec* mask = masked ? &spec.inputs[first + 3] : nullptr;
  if (spec.inputPresent(first + 4) && !takes(spec.inputs[first + 4], DType::kI64))
    return notTaken(spec, "kept rows of another type");
  if (mask && !takes(*mask, DType::kF32) && !takes(*mask, DType::kBool)) return notTaken(spec, "a mask of another type");
  SS_ASSIGN(AttentionShape s, attentionShape(q, k, v, mask ? &mask->dims : nullptr, spec.attrs));
  if (s.maskColumn != 0 && s.maskColumn != 1) return notTaken(spec, "a mask whose columns are apart");
  if (!packs(s.scores.aRow, s.scores.aColumn, s.m(), s.d()) || !packs(s.scores.bRow, s.scores.bColumn, s.d(), s.n()) ||
      !packs(s.context.bRow, s.context.bColumn, s.n(), s.e()) || !packs(s.context.yRow, s.context.yColumn, s.m(), s.e()))
    return notTaken(spec, "operands without neighbours in a row");
  const double flops = 2.0 * static_cast<double>(s.heads()) * static_cast<double>(s.m()) * static_cast<double>(s.n()) *
                       static_cast<double>(s.d() + s.e());
  return AttentionPlan(std::move(s), mask ? mask->dtype : DType::kUndefined, threadsForFlops(flops, spec.threads));
}

Determinism tileOrder() {
  return Determinism::fixed("every tile or head is computed by one thread; tiles depend on extents alone");
}

class AttentionKernel final : public Kernel {
 public:
  explicit AttentionKernel(AttentionPlan plan) : p_(std::move(plan)) {
    tile_ = layout_.add(static_cast<std::size_t>(p_.rows() * p_.shape().n()) * sizeof(float));
    if (p_.shape().dropout > 0) kept_ = layout_.add(static_cast<std::size_t>(p_.shape().n()));
  }
  std::size_t workspaceBytes() const override {
    return p_.countBytes() + layout_.size() * static_cast<std::size_t>(p_.threads());
  }
  std::string implementation() const override { return "attention tiles, onednn sgemm"; }
  Determinism determinism() const override { return tileOrder(); }

  Status run(const KernelCall& call) override {
    const ThreadScope scope(1);  // the library's own; ours are named
    DnnlFailure failure;
    SS_ASSIGN(const auto counts, p_.countRows(call, 4));
    const std::int64_t tiles = p_.tiles(), items = p_.shape().heads() * tiles;
#pragma omp parallel for schedule(dynamic) num_threads(p_.threads())
    for (std::int64_t item = 0; item < items; ++item)
      failure.note(tile(call, item / tiles, item % tiles, p_.rowsOf(counts, item / tiles), roomOf(call)));
    return failure.status("attention");
  }

 private:
  std::byte* roomOf(const KernelCall& call) const {
    return call.workspace.data() + p_.countBytes() + static_cast<std::size_t>(omp_get_thread_num()) * layout_.size();
  }

  // `computed`: rows of the head that are.
  dnnl_status_t tile(const KernelCall& call, std::int64_t head, std::int64_t number, std::int64_t computed,
                     std::byte* workspace) const {
    const AttentionShape& s = p_.shape();
    const Range whole{number * p_.rows(), std::min(s.m(), (number + 1) * p_.rows())};
    const Range tile{whole.begin, std::clamp(computed, whole.begin, whole.end)};
    if (tile.end < whole.end) leaveOut(call, head, {tile.end, whole.end});
    if (tile.size() == 0) return dnnl_success;
    const TensorView* mask = call.inputPresent(3) ? &call.inputs[3] : nullptr;
    const Range columns = p_.columns(mask, head, tile);
    auto* x = reinterpret_cast<float*>(workspace + tile_);
    auto* kept = reinterpret_cast<std::uint8_t*>(workspace + kept_);
    if (const auto status = p_.scores(p_.query(call, 0, head), p_.keys(call, 1, head), mask, head, tile, columns, x);
        status != dnnl_success)
      return status;
    float* statistics = call.outputPresent(1) ? output(call, 1) + 2 * (head * s.m() + tile.begin) : nullptr;
    const Strided<float> y{output(call, 0) + s.context.yOffset(head) + tile.begin * s.context.yRow, s.context.yRow,
                           s.context.yColumn};
    std::array<float, 128> scales;
    for (std::int64_t i = 0; i < tile.size(); ++i) {
      float* row = x + i * columns.size();
      const float max = largestOf(row, columns.size());
      const bool dead = s.safe && max == -kInfinity;
      const double sum = sumInBlocks(columns.size(),
                                     [&](std::int64_t at, std::int64_t n) { return powersOf(dead ? 0 : max, row + at, n); });
      if (s.dropout > 0) {
        p_.draw(call.random, head, tile.begin + i, columns, kept);
        keepRow(kept, p_.keptFactor(), row, columns.size());
      }
      scales[static_cast<std::size_t>(i)] = dead ? 0 : static_cast<float>(1 / sum);
      if (!statistics) continue;
      statistics[2 * i] = dead ? 0 : max;
      statistics[2 * i + 1] = scales[static_cast<std::size_t>(i)];
    }
    const Operand v = p_.values(call, 2, head).rowsFrom(columns.begin);
    const auto status = multiply(tile.size(), s.e(), columns.size(), 1, {x, columns.size(), 1}, v, 0, y);
    for (std::int64_t i = 0; i < tile.size(); ++i)
      scaleRow(scales[static_cast<std::size_t>(i)], y.data + i * y.row, y.column, s.e());
    return status;
  }

  void leaveOut(const KernelCall& call, std::int64_t head, Range rows) const {
    const AttentionShape& s = p_.shape();
    clear({output(call, 0) + s.context.yOffset(head) + rows.begin * s.context.yRow, s.context.yRow, s.context.yColumn},
          rows.size(), s.e());
    if (call.outputPresent(1)) std::fill_n(output(call, 1) + 2 * (head * s.m() + rows.begin), 2 * rows.size(), 0.0F);
  }

  AttentionPlan p_;
  WorkspaceLayout layout_;  // of one thread
  std::size_t tile_ = 0, kept_ = 0;
};

class AttentionGradKernel final : public Kernel {
 public:
  // `results`: where the gradients lie.
  AttentionGradKernel(AttentionPlan plan, AttentionShape results) : p_(std::move(plan)), to_(std::move(results)) {
    const auto elements = static_cast<std::size_t>(p_.rows() * p_.shape().n());
    tile_ = layout_.add(elements * sizeof(float));
    other_ = layout_.add(elements * sizeof(float));
    if (p_.shape().dropout > 0) kept_ = layout_.add(elements);
    if (p_.shape().softcap > 0) slopes_ = layout_.add(elements * sizeof(float));
  }
  std::size_t workspaceBytes() const override {
    return p_.countBytes() + layout_.size() * static_cast<std::size_t>(p_.threads());
  }
  std::string implementation() const override { return "attention tiles, onednn sgemm"; }
  Determinism determinism() const override { return tileOrder(); }

  Status run(const KernelCall& call) override {
    SS_ASSIGN(const auto counts, p_.countRows(call, 6));
    const ThreadScope scope(1);
    DnnlFailure failure;
#pragma omp parallel for schedule(dynamic) num_threads(p_.threads())
    for (std::int64_t group = 0; group < p_.shape().heads() / p_.shape().shared; ++group)
      failure.note(this->group(
          call, group, counts,
          call.workspace.data() + p_.countBytes() + static_cast<std::size_t>(omp_get_thread_num()) * layout_.size()));
    return failure.status("attention gradient");
  }

 private:
  // Heads that share keys and values.
  dnnl_status_t group(const KernelCall& call, std::int64_t group, std::span<const std::int64_t> counts,
                      std::byte* workspace) const {
    const AttentionShape& s = p_.shape();
    const std::int64_t first = group * s.shared;
    const Strided<float> dk{output(call, 1) + to_.scores.bOffset(first), to_.scores.bRow, to_.scores.bColumn},
        dv{output(call, 2) + to_.context.bOffset(first), to_.context.bRow, to_.context.bColumn};
    clear(dk, s.d(), s.n());
    clear(dv, s.n(), s.e());
    for (std::int64_t head = first; head < first + s.shared; ++head) {
      const std::int64_t computed = p_.rowsOf(counts, head);
      clear({output(call, 0) + to_.scores.aOffset(head) + computed * to_.scores.aRow, to_.scores.aRow, to_.scores.aColumn},
            s.m() - computed, s.d());
      for (std::int64_t begin = 0; begin < computed; begin += p_.rows())
        if (const auto status = tile(call, head, {begin, std::min(computed, begin + p_.rows())}, workspace, dk, dv);
            status != dnnl_success)
          return status;
    }
    return dnnl_success;
  }

  dnnl_status_t tile(const KernelCall& call, std::int64_t head, Range tile, std::byte* workspace, Strided<float> dk,
                     Strided<float> dv) const {
    const AttentionShape& s = p_.shape();
    const TensorView* mask = call.inputPresent(5) ? &call.inputs[5] : nullptr;
    const Range columns = p_.columns(mask, head, tile);
    const std::int64_t width = columns.size(), rows = tile.size();
    auto *p = reinterpret_cast<float*>(workspace + tile_), *other = reinterpret_cast<float*>(workspace + other_);
    auto* kept = reinterpret_cast<std::uint8_t*>(workspace + kept_);
    auto* slopes = s.softcap > 0 ? reinterpret_cast<float*>(workspace + slopes_) : nullptr;
    const Operand q = p_.query(call, 2, head).rowsFrom(tile.begin), k = p_.keys(call, 3, head),
                  v = p_.values(call, 4, head).rowsFrom(columns.begin);
    const Operand dy{input(call, 0) + s.context.yOffset(head) + tile.begin * s.context.yRow, s.context.yRow,
                     s.context.yColumn};
    const float* statistics = input(call, 1) + 2 * (head * s.m() + tile.begin);
    auto status = p_.scores(p_.query(call, 2, head), k, mask, head, tile, columns, p, slopes);
    if (status != dnnl_success) return status;
    for (std::int64_t i = 0; i < rows; ++i) {
      powersOf(statistics[2 * i], p + i * width, width);
      scaleRow(statistics[2 * i + 1], p + i * width, 1, width);
      if (s.dropout > 0) {
        p_.draw(call.random, head, tile.begin + i, columns, kept + i * width);
        std::copy_n(p + i * width, width, other + i * width);
        keepRow(kept + i * width, p_.keptFactor(), other + i * width, width);
      }
    }
    const Operand weights{s.dropout > 0 ? other : p, width, 1};
    status = multiply(width, s.e(), rows, 1, weights.turned(), dy, 1, dv.rowsFrom(columns.begin));
    if (status == dnnl_success) status = multiply(rows, width, s.e(), 1, dy, v.turned(), 0, {other, width, 1});
    if (status != dnnl_success) return status;
    for (std::int64_t i = 0; i < rows; ++i) {
      float *pRow = p + i * width, *dp = other + i * width;
      if (s.dropout > 0) keepRow(kept + i * width, p_.keptFactor(), dp, width);
      const double dot = sumInBlocks(width, [&](std::int64_t at, std::int64_t n) { return dotOf(pRow + at, dp + at, n); });
      scoreGradient(pRow, static_cast<float>(dot), dp, width);
      if (slopes != nullptr) multiplyRow(slopes + i * width, dp, width);
      p_.stopAtDropped(mask, head, tile.begin + i, columns, dp);
    }
    const Operand ds{other, width, 1}, someKeys{k.data + columns.begin * k.column, k.row, k.column};
    const Strided<float> dq{output(call, 0) + to_.scores.aOffset(head) + tile.begin * to_.scores.aRow, to_.scores.aRow,
                            to_.scores.aColumn};
    status = multiply(rows, s.d(), width, s.scale, ds, someKeys.turned(), 0, dq);
    if (status != dnnl_success) return status;
    return multiply(s.d(), width, rows, s.scale, q.turned(), ds, 1,
                    {dk.data + columns.begin * dk.column, dk.row, dk.column});
  }

  AttentionPlan p_;
  AttentionShape to_;
  WorkspaceLayout layout_;  // of one thread
  std::size_t tile_ = 0, other_ = 0, kept_ = 0, slopes_ = 0;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeFusedAttention(const KernelSpec& spec) {
  for (const std::size_t i : {0u, 1u, 2u})
    if (!takesInput(spec, i)) return notTaken(spec, "elements other than float32");
  if (!takesOutput(spec, 0)) return notTaken(spec, "a result other than float32");
  SS_ASSIGN(AttentionPlan plan, planOf(spec, 0, spec.inputs[0].dims, spec.inputs[1].dims, spec.inputs[2].dims));
  if (!takesOptionalOutput(spec, 1, 2 * plan.shape().heads() * plan.shape().m()))
    return notTaken(spec, "statistics of another size");
  return std::make_unique<AttentionKernel>(std::move(plan));
}

Result<std::unique_ptr<Kernel>> makeFusedAttentionGrad(const KernelSpec& spec) {
  for (const std::size_t i : {0u, 1u, 2u, 3u, 4u})
    if (!takesInput(spec, i)) return notTaken(spec, "elements other than float32");
  for (const std::size_t i : {0u, 1u, 2u})
    if (!takesOutput(spec, i)) return notTaken(spec, "gradients other than float32, or fewer than three");
  const Dims &q = spec.inputs[2].dims, &k = spec.inputs[3].dims, &v = spec.inputs[4].dims;
  SS_ASSIGN(AttentionPlan plan, planOf(spec, 2, q, k, v));
  SS_ASSIGN(AttentionShape results, attentionGradientShape(q, k, v, spec.attrs));
  const auto found = [](const MatMulShape& s) { return packs(s.bRow, s.bColumn, s.k, s.n); };
  if (!packs(results.scores.aRow, results.scores.aColumn, results.m(), results.d()) || !found(results.scores) ||
      !found(results.context))
    return notTaken(spec, "gradients without neighbours in a row");
  return std::make_unique<AttentionGradKernel>(std::move(plan), std::move(results));
}

}  // namespace stepscope::cpu

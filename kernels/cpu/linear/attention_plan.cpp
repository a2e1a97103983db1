#include "kernels/cpu/linear/attention_plan.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/linear/attention_rows.h"
#include "kernels/cpu/linear/linear_kernels.h"
#include "kernels/cpu/loops/support.h"
#include "kernels/dropout_threshold.h"

namespace stepscope::cpu::attention {

dnnl_status_t multiply(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Operand a, Operand b, float beta,
                       Strided<float> c) {
  if (c.column != 1) return multiply(n, m, k, alpha, b.turned(), a.turned(), beta, c.turned());
  const bool transA = a.column != 1, transB = b.column != 1;
  return dnnl_sgemm(transA ? 'T' : 'N', transB ? 'T' : 'N', m, n, k, alpha, a.data, transA ? a.column : a.row, b.data,
                    transB ? b.column : b.row, beta, c.data, c.row);
}

bool packs(std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) {
  return (column == 1 && row >= columns) || (row == 1 && column >= rows);
}

void clear(const Strided<float>& c, std::int64_t rows, std::int64_t columns) {
  const bool byRows = c.column == 1;
  for (std::int64_t i = 0; i < (byRows ? rows : columns); ++i)
    std::fill_n(c.data + i * (byRows ? c.row : c.column), byRows ? columns : rows, 0.0F);
}

AttentionPlan::AttentionPlan(AttentionShape shape, DType mask, int threads)
    : s_(std::move(shape)), mask_(mask), threads_(threads) {
  // Two tiles fit a second-level cache of half a megabyte.
  constexpr std::int64_t kTileFloats = 48 << 10;
  rows_ = std::min(s_.m(), std::clamp<std::int64_t>(kTileFloats / std::max<std::int64_t>(1, s_.n()) / 16 * 16, 16, 128));
}

Result<AttentionPlan> AttentionPlan::of(const KernelSpec& spec, std::size_t first, const Dims& q, const Dims& k,
                                        const Dims& v) {
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

Operand AttentionPlan::query(const KernelCall& call, std::size_t i, std::int64_t head) const {
  return {input(call, i) + s_.scores.aOffset(head), s_.scores.aRow, s_.scores.aColumn};
}

Operand AttentionPlan::keys(const KernelCall& call, std::size_t i, std::int64_t head) const {
  return {input(call, i) + s_.scores.bOffset(head), s_.scores.bRow, s_.scores.bColumn};
}

Operand AttentionPlan::values(const KernelCall& call, std::size_t i, std::int64_t head) const {
  return {input(call, i) + s_.context.bOffset(head), s_.context.bRow, s_.context.bColumn};
}

Result<std::span<const std::int64_t>> AttentionPlan::countRows(const KernelCall& call, std::size_t kept) const {
  const std::span counts(reinterpret_cast<std::int64_t*>(call.workspace.data()), static_cast<std::size_t>(s_.entries()));
  std::ranges::fill(counts, s_.m());
  if (call.inputPresent(kept)) SS_TRY(countKeptRows(s_, call.inputs[kept].as<std::int64_t>(), counts));
  return counts;
}

Range AttentionPlan::columns(const TensorView* mask, std::int64_t head, Range tile) const {
  const Range all{0, s_.n()};
  if (mask_ == DType::kUndefined || s_.maskColumn != 1 || (mask_ == DType::kBool && s_.fill > kDroppedScore)) return all;
  Range kept{s_.n(), 0};
  const std::int64_t rows = s_.maskRow == 0 ? 1 : tile.size();
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t at = s_.maskOffset(head) + (tile.begin + i) * s_.maskRow;
    const auto keeps = [&](std::int64_t j) {
      return mask_ == DType::kBool ? (static_cast<const std::uint8_t*>(mask->data)[at + j] != 0) != s_.invert
                                   : !(static_cast<const float*>(mask->data)[at + j] <= kDroppedScore);
    };
    std::int64_t first = 0, last = s_.n();
    while (last > 0 && !keeps(last - 1)) --last;
    if (last == 0) return all;
    while (!keeps(first)) ++first;
    kept = {std::min(kept.begin, first), std::max(kept.end, last)};
  }
  return kept;
}

dnnl_status_t AttentionPlan::scores(const Operand& q, const Operand& k, const TensorView* mask, std::int64_t head,
                                    Range tile, Range columns, float* x, float* slopes) const {
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

void AttentionPlan::stopAtDropped(const TensorView* mask, std::int64_t head, std::int64_t row, Range columns,
                                  float* dx) const {
  if (!mask || mask_ != DType::kBool) return;
  fillRow(static_cast<const std::uint8_t*>(mask->data) + maskAt(head, row, columns), s_.maskColumn, s_.invert, 0, dx,
          columns.size());
}

void AttentionPlan::draw(const RandomKey& key, std::int64_t head, std::int64_t row, Range columns,
                         std::uint8_t* kept) const {
  const auto element = static_cast<std::uint64_t>((head * s_.m() + row) * s_.n() + columns.begin);
  drawRow(key, element, dropoutThreshold(s_.dropout), kept, columns.size());
}

Determinism tileOrder() {
  return Determinism::fixed("every tile or head is computed by one thread; tiles depend on extents alone");
}

}  // namespace stepscope::cpu::attention

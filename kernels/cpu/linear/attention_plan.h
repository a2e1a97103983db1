// What attention and its gradient share: the operands of one head, and a tile of rows of its scores (attention.cpp).
#pragma once

#include <cstdint>
#include <span>

#include "kernels/attention_shape.h"
#include "kernels/cpu/dnnl_support.h"
#include "kernels/kernel.h"

namespace stepscope::cpu::attention {

// A matrix: element [i, j] is data[i row + j column]. One of the strides is 1.
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
                       Strided<float> c);
// Whether multiply() reads rows x columns with these strides.
bool packs(std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns);
// c [rows, columns] = 0.
void clear(const Strided<float>& c, std::int64_t rows, std::int64_t columns);

// From begin on, end not in it.
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

class AttentionPlan {
 public:
  // `mask`: its type; kUndefined: none.
  AttentionPlan(AttentionShape shape, DType mask, int threads);
  // `first`: the input that is q; the mask is the third after it. Errors: what the fast kernels do not take.
  static Result<AttentionPlan> of(const KernelSpec& spec, std::size_t first, const Dims& q, const Dims& k, const Dims& v);

  const AttentionShape& shape() const { return s_; }
  std::int64_t rows() const { return rows_; }  // of a tile
  std::int64_t tiles() const { return (s_.m() + rows_ - 1) / rows_; }
  int threads() const { return threads_; }
  float keptFactor() const { return static_cast<float>(1 / (1 - s_.dropout)); }

  // Of one head, in input `i`.
  Operand query(const KernelCall& call, std::size_t i, std::int64_t head) const;   // [m, d]
  Operand keys(const KernelCall& call, std::size_t i, std::int64_t head) const;    // [d, n]
  Operand values(const KernelCall& call, std::size_t i, std::int64_t head) const;  // [n, e]

  // At the beginning of the workspace: how many rows of each batch entry are computed.
  std::size_t countBytes() const { return (static_cast<std::size_t>(s_.entries()) * sizeof(std::int64_t) + 63) / 64 * 64; }
  // `kept`: the input that names the rows that are. Errors: those of countKeptRows.
  Result<std::span<const std::int64_t>> countRows(const KernelCall& call, std::size_t kept) const;
  std::int64_t rowsOf(std::span<const std::int64_t> counts, std::int64_t head) const {
    return counts[static_cast<std::size_t>(head / (s_.heads() / s_.entries()))];
  }

  // The columns that some row of the tile keeps; all where a row keeps none, whose softmax is not 0 anywhere.
  Range columns(const TensorView* mask, std::int64_t head, Range tile) const;
  // scores [tile, columns], row-major with `columns.size()` floats to a row. `slopes`: as large, of bounded scores by the
  // products; null where they are not wanted.
  dnnl_status_t scores(const Operand& q, const Operand& k, const TensorView* mask, std::int64_t head, Range tile,
                       Range columns, float* x, float* slopes = nullptr) const;
  // No gradient passes where a bool mask put another number in the place of the score. `dx`: of one row.
  void stopAtDropped(const TensorView* mask, std::int64_t head, std::int64_t row, Range columns, float* dx) const;
  // Which columns of a row Dropout keeps.
  void draw(const RandomKey& key, std::int64_t head, std::int64_t row, Range columns, std::uint8_t* kept) const;

 private:
  std::int64_t maskAt(std::int64_t head, std::int64_t row, Range columns) const {
    return s_.maskOffset(head) + row * s_.maskRow + columns.begin * s_.maskColumn;
  }

  AttentionShape s_;
  DType mask_;
  int threads_;
  std::int64_t rows_ = 1;
};

// What both kernels say of their bits.
Determinism tileOrder();

}  // namespace stepscope::cpu::attention

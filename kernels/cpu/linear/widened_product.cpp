#include "kernels/cpu/linear/widened_product.h"

#include <omp.h>

#include <algorithm>
#include <utility>

#include "kernels/cpu/dnnl_support.h"
#include "kernels/cpu/loops/low_operands.h"

namespace stepscope::cpu {
namespace {

// A tile of each operand and of the result fits into the second cache of a core. Results of 256 rows, the tokens of a small
// batch, still make an even number of tiles.
constexpr std::int64_t kRows = 128, kColumns = 384, kDepth = 768;

struct Span {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};
Span part(std::int64_t index, std::int64_t step, std::int64_t extent) {
  return {index * step, std::min(extent, (index + 1) * step)};
}

// A matrix of bfloat16, and what sgemm is told of a tile of it.
struct Operand {
  const std::uint16_t* data = nullptr;
  std::int64_t row = 1, column = 1;  // strides; one of them is 1

  bool turned() const { return column != 1; }
  std::int64_t leading(Span rows, Span columns) const { return turned() ? rows.size() : columns.size(); }
  void widen(Span rows, Span columns, float* to, ConvertLoop loop) const {
    const Span outer = turned() ? columns : rows, inner = turned() ? rows : columns;
    const std::int64_t stride = turned() ? column : row;
    for (std::int64_t i = outer.begin; i < outer.end; ++i, to += inner.size())
      loop(data + i * stride + inner.begin, to, inner.size());
  }
};

class WidenedProduct final : public Kernel {
 public:
  WidenedProduct(MatMulParams params, bool bias)
      : p_(std::move(params)),
        bias_(bias),
        widen_(convertLoop(p_.dtype, DType::kF32)),
        narrow_(convertLoop(DType::kF32, p_.dtype)) {
    const MatMulShape& s = p_.shape;
    rowTiles_ = (s.m + kRows - 1) / kRows;
    columnTiles_ = (s.n + kColumns - 1) / kColumns;
    p_.threads = static_cast<int>(std::min<std::int64_t>(p_.threads, s.batches() * columnTiles_ * rowTiles_));
    const std::int64_t rows = std::min(s.m, kRows), columns = std::min(s.n, kColumns), depth = std::min(s.k, kDepth);
    left_ = layout_.add(static_cast<std::size_t>(rows * depth) * sizeof(float));
    right_ = layout_.add(static_cast<std::size_t>(depth * columns) * sizeof(float));
    result_ = layout_.add(static_cast<std::size_t>(rows * columns) * sizeof(float));
  }

  std::size_t workspaceBytes() const override { return layout_.size() * static_cast<std::size_t>(p_.threads); }

  Status run(const KernelCall& call) override {
    const std::int64_t tiles = p_.shape.batches() * columnTiles_ * rowTiles_;
    const ThreadScope scope(1);  // the routine's own; ours are named
    DnnlFailure failure;
#pragma omp parallel num_threads(p_.threads)
    {
      std::byte* room = call.workspace.data() + static_cast<std::size_t>(omp_get_thread_num()) * layout_.size();
      std::int64_t widened = -1;  // batch and columns whose right operand lies in the room already
#pragma omp for schedule(static)
      for (std::int64_t tile = 0; tile < tiles; ++tile) {
        const std::int64_t columns = tile / rowTiles_;
        failure.note(multiply(call, columns, tile % rowTiles_, room, columns == widened && p_.shape.k <= kDepth));
        widened = columns;
      }
    }
    return failure.status("matrix product");
  }
  std::string implementation() const override {
    return std::string("onednn sgemm by tiles") + (bias_ ? " + bias" : "") + (p_.relu ? " + relu" : "") + " in float32";
  }
  Determinism determinism() const override {
    return Determinism::fixed("every tile is computed by one thread; tiles depend on extents alone");
  }

 private:
  dnnl_status_t multiply(const KernelCall& call, std::int64_t columnTile, std::int64_t rowTile, std::byte* room,
                         bool rightIsThere) const {
    const MatMulShape& s = p_.shape;
    const std::int64_t batch = columnTile / columnTiles_;
    const Span rows = part(rowTile, kRows, s.m), columns = part(columnTile % columnTiles_, kColumns, s.n);
    const Operand a{static_cast<const std::uint16_t*>(call.inputs[p_.a].data) + s.aOffset(batch), s.aRow, s.aColumn},
        b{static_cast<const std::uint16_t*>(call.inputs[p_.b].data) + s.bOffset(batch), s.bRow, s.bColumn};
    auto *left = reinterpret_cast<float*>(room + left_), *right = reinterpret_cast<float*>(room + right_),
         *result = reinterpret_cast<float*>(room + result_);
    if (bias_)
      for (std::int64_t i = 0; i < rows.size(); ++i)
        widen_(static_cast<const std::uint16_t*>(call.inputs[2].data) + columns.begin, result + i * columns.size(),
               columns.size());
    for (std::int64_t block = 0; block * kDepth < s.k; ++block) {
      const Span depth = part(block, kDepth, s.k);
      a.widen(rows, depth, left, widen_);
      if (!rightIsThere) b.widen(depth, columns, right, widen_);
      const dnnl_status_t status =
          dnnl_sgemm(a.turned() ? 'T' : 'N', b.turned() ? 'T' : 'N', rows.size(), columns.size(), depth.size(), p_.alpha,
                     left, a.leading(rows, depth), right, b.leading(depth, columns), bias_ || block > 0 ? 1.0f : 0.0f,
                     result, columns.size());
      if (status != dnnl_success) return status;
    }
    auto* y = static_cast<std::uint16_t*>(call.outputs[0].data) + s.yOffset(batch);
    for (std::int64_t i = 0; i < rows.size(); ++i) {
      float* line = result + i * columns.size();
      if (p_.relu)
        for (std::int64_t j = 0; j < columns.size(); ++j) line[j] = line[j] < 0 ? 0.0f : line[j];  // NaN stays
      narrow_(line, y + (rows.begin + i) * s.yRow + columns.begin, columns.size());
    }
    return dnnl_success;
  }

  MatMulParams p_;
  bool bias_;
  ConvertLoop widen_, narrow_;
  std::int64_t rowTiles_ = 0, columnTiles_ = 0;
  WorkspaceLayout layout_;  // of one thread
  std::size_t left_ = 0, right_ = 0, result_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> makeWidenedProduct(MatMulParams params, bool bias) {
  return std::make_unique<WidenedProduct>(std::move(params), bias);
}

}  // namespace stepscope::cpu

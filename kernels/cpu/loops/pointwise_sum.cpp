// stepscope.PointwiseSum: blocks of a chain are added up in double while they are in the first cache. The elements of a
// result are cut into parts by the extents alone, and the parts are added in their order, so the bits do not depend on the
// number of threads.
#include <algorithm>
#include <optional>
#include <string>

#include "kernels/cpu/loops/chain.h"
#include "kernels/cpu/loops/lanes_last.h"
#include "kernels/pointwise_sum_shape.h"

namespace stepscope::cpu {
namespace {

constexpr std::int64_t kPartElements = 1 << 14;  // below this a part is not worth its own sum
constexpr std::int64_t kMostParts = 64;

// One number from n neighbours. Four sums: one would wait for each of its additions.
SS_CLONES double sumOfRun(const float* x, std::int64_t n) {
  double a = 0, b = 0, c = 0, d = 0;
  const std::int64_t quarter = n / 4;
#pragma omp simd reduction(+ : a, b, c, d)
  for (std::int64_t i = 0; i < quarter; ++i) {
    a += static_cast<double>(x[i]);
    b += static_cast<double>(x[i + quarter]);
    c += static_cast<double>(x[i + 2 * quarter]);
    d += static_cast<double>(x[i + 3 * quarter]);
  }
  for (std::int64_t i = 4 * quarter; i < n; ++i) a += static_cast<double>(x[i]);
  return (a + b) + (c + d);
}

// Adds n numbers to as many sums.
template <typename T>
SS_CLONES void addRow(double* sums, const T* x, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) sums[i] += static_cast<double>(x[i]);
}

// The chain's extents seen as [rows, columns], of which one is summed.
struct Plan {
  std::int64_t rows = 1, columns = 1;
  bool ofRows = false;  // results are columns; else rows
  double share = 1;     // 1 / elements of a mean
  // A tile is what is computed at once: several rows, or a part of one.
  std::int64_t tileRows = 1, tileColumns = 1, tilesPerRow = 1;
  std::int64_t parts = 1;  // of the tiles along what is summed

  std::int64_t results() const { return ofRows ? columns : rows; }
  std::int64_t rowTiles() const { return (rows + tileRows - 1) / tileRows; }
  // Tiles along what is summed, and side by side.
  std::int64_t summed() const { return ofRows ? rowTiles() : tilesPerRow; }
  std::int64_t beside() const { return ofRows ? tilesPerRow : rowTiles(); }
};

Plan planOf(std::int64_t rows, std::int64_t columns, bool ofRows) {
  Plan plan{.rows = rows, .columns = columns, .ofRows = ofRows};
  plan.tileColumns = std::min(columns, kChainBlock);
  plan.tileRows = std::clamp<std::int64_t>(kChainBlock / columns, 1, rows);
  plan.tilesPerRow = (columns + kChainBlock - 1) / kChainBlock;
  plan.parts = std::clamp<std::int64_t>(rows * columns / kPartElements, 1,
                                        std::min(plan.summed(), std::max<std::int64_t>(1, kMostParts / plan.beside())));
  return plan;
}

class PointwiseSumKernel final : public Kernel {
 public:
  PointwiseSumKernel(Chain chain, const Plan& plan, DType type, int threads)
      : chain_(std::move(chain)),
        plan_(plan),
        narrow_(convertLoop(DType::kF32, type)),
        parts_(partsOf(plan.beside() * plan.parts,
                       plan.rows * plan.columns * static_cast<std::int64_t>(chain_.steps()) / (plan.beside() * plan.parts),
                       threads)) {}

  std::size_t workspaceBytes() const override {
    return sumBytes() + static_cast<std::size_t>(parts_.count) * (chain_.slots() + 1) * kChainBlock * sizeof(float);
  }

  Status run(const KernelCall& call) override {
    auto* sums = reinterpret_cast<double*>(call.workspace.data());  // [parts, results]
    auto* scratch = reinterpret_cast<float*>(call.workspace.data() + sumBytes());
    const std::int64_t summed = plan_.summed();
    parallelParts(plan_.beside() * plan_.parts, parts_, 1, [&](int slot, std::int64_t begin, std::int64_t end) {
      float* own = scratch + static_cast<std::size_t>(slot) * (chain_.slots() + 1) * kChainBlock;
      float* block = own + chain_.slots() * kChainBlock;
      chain_.prepare(call, own);
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t part = i / plan_.beside(), beside = i % plan_.beside();
        double* to = sums + part * plan_.results() + beside * (plan_.ofRows ? plan_.tileColumns : plan_.tileRows);
        std::fill_n(to, resultsBeside(beside), 0.0);
        for (std::int64_t t = summed * part / plan_.parts; t < summed * (part + 1) / plan_.parts; ++t)
          addTile(call, own, block, plan_.ofRows ? t : beside, plan_.ofRows ? beside : t, to);
      }
    });
    finish(call, sums, scratch);
    return {};
  }
  bool mayFail() const override { return false; }
  bool keepsNothing() const override { return true; }
  std::string implementation() const override {
    return "vector loop, " + std::to_string(chain_.steps()) + " steps and a sum";
  }
  Determinism determinism() const override { return Determinism::fixed("sums are cut by the extents alone"); }

 private:
  std::size_t sumBytes() const {
    return (static_cast<std::size_t>(plan_.parts * plan_.results()) * sizeof(double) + 63) / 64 * 64;
  }
  std::int64_t resultsBeside(std::int64_t beside) const {
    const std::int64_t width = plan_.ofRows ? plan_.tileColumns : plan_.tileRows;
    return std::min(width, plan_.results() - beside * width);
  }

  void addTile(const KernelCall& call, float* own, float* block, std::int64_t rowTile, std::int64_t columnTile,
               double* sums) const {
    const std::int64_t row = rowTile * plan_.tileRows, rows = std::min(plan_.tileRows, plan_.rows - row);
    const std::int64_t column = columnTile * kChainBlock, columns = std::min(plan_.tileColumns, plan_.columns - column);
    // Of several rows, which are whole, the chain sees one.
    if (plan_.tileRows > 1)
      chain_.run(call, own, 0, row * plan_.columns, rows * columns, block);
    else
      chain_.run(call, own, row, column, columns, block);
    for (std::int64_t r = 0; r < rows; ++r)
      if (plan_.ofRows)
        addRow(sums, block + r * columns, columns);
      else
        sums[r] += sumOfRun(block + r * columns, columns);
  }

  // The parts in their order, and the results in their type.
  void finish(const KernelCall& call, double* sums, float* block) const {
    for (std::int64_t part = 1; part < plan_.parts; ++part) addRow(sums, sums + part * plan_.results(), plan_.results());
    for (std::int64_t at = 0; at < plan_.results(); at += kChainBlock) {
      const std::int64_t n = std::min(kChainBlock, plan_.results() - at);
      float* to = narrow_ != nullptr ? block : output(call, 0) + at;
      for (std::int64_t k = 0; k < n; ++k) to[k] = static_cast<float>(sums[at + k] * plan_.share);
      if (narrow_ != nullptr) narrow_(block, output<std::uint16_t>(call, 0) + at, n);
    }
  }

  Chain chain_;
  Plan plan_;
  ConvertLoop narrow_;  // null: results are float32
  Parts parts_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makePointwiseSum(const KernelSpec& spec) {
  if (spec.outputs.size() != 1 || !takesAnyFloat(spec.outputs[0], elementCount(spec.outputs[0].dims)))
    return notTaken(spec, "a result that is empty or no float");
  if (anyBlocked(spec)) return notTaken(spec, "operands in a layout");
  SS_ASSIGN(const PointwiseSumShape shape, pointwiseSumShape(spec));
  const std::int64_t total = elementCount(shape.dims), results = elementCount(spec.outputs[0].dims);
  if (total == 0) return notTaken(spec, "nothing to add");
  if (!shape.ofLeading && !shape.ofTrailing) return notTaken(spec, "sums along axes between those that stay");
  Plan plan = shape.ofTrailing ? planOf(results, total / results, false) : planOf(total / results, results, true);
  if (shape.mean) plan.share = static_cast<double>(results) / static_cast<double>(total);
  SS_ASSIGN(Chain chain,
            Chain::of(spec, {.dtype = DType::kF32, .dims = shape.dims}, plan.tileRows > 1 ? total : plan.columns));
  return std::make_unique<PointwiseSumKernel>(std::move(chain), plan, spec.outputs[0].dtype, spec.threads);
}

}  // namespace stepscope::cpu

// Matrix products in tiles: y[b] = relu?(alpha · a[b] · b[b] (+ beta · c, broadcast) (+ addend)), operands read and results
// written where they lie (kernels/matmul_shape.h). A block computes a square tile of the result, a thread a square part of
// that; sums are float32 over k in its order, so the bits depend on nothing else. Where the device has a library for
// products (cuBLASLt), that computes them, low types as they are.
#include "kernels/converted_kernel.h"
#include "kernels/cuda/epilogue_product.h"
#include "kernels/cuda/library_form.h"
#include "kernels/cuda/support.h"
#include "kernels/cuda/walk.h"
#include "kernels/matmul_shape.h"

namespace stepscope::cuda {
inline namespace product_cu {

constexpr int kSide = 16;   // a block has kSide × kSide threads
constexpr int kDepth = 16;  // of a tile, along k

struct Params {
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t aRow = 1, aColumn = 1, bRow = 1, bColumn = 1, yRow = 1, yColumn = 1;
  std::int64_t cRow = 0, cColumn = 0;
  float alpha = 1, beta = 0;
  bool relu = false;
  Walk<3> batch;  // of a, b and y
  std::int64_t aStart = 0, bStart = 0;
  std::int64_t batches = 1;
};

// A tile of kPart * kSide rows and columns; a thread has kPart × kPart results, kSide apart.
template <int kPart>
SS_GLOBAL void products(Global<const float> a, Global<const float> b, Global<const float> c, Global<const float> addend,
                        Global<float> y, Params p) {
  constexpr int kTile = kPart * kSide, kThreadsHere = kSide * kSide;
  SS_SHARED(float, aTile, kDepth*(kTile + 1));  // [k][row], one more so that columns fall into different banks
  SS_SHARED(float, bTile, kDepth*(kTile + 1));  // [k][column]
  const std::int64_t across = (p.n + kTile - 1) / kTile, down = (p.m + kTile - 1) / kTile;
  const std::int64_t tile = gpu::blockIndex() % (across * down);
  const std::int64_t firstRow = tile / across * kTile, firstColumn = tile % across * kTile;
  std::int64_t at[3];
  p.batch.offsets(gpu::blockIndex() / (across * down), at);
  at[0] += p.aStart;
  at[1] += p.bStart;
  const int thread = gpu::threadIndex(), row = thread / kSide, column = thread % kSide;
  float sums[kPart][kPart] = {};
  for (std::int64_t first = 0; first < p.k; first += kDepth) {
    const int depth = static_cast<int>(p.k - first < kDepth ? p.k - first : kDepth);
    for (int i = thread; i < kTile * kDepth; i += kThreadsHere) {
      // Neighbouring threads read neighbouring elements.
      const int ak = p.aColumn == 1 ? i % kDepth : i / kTile, ar = p.aColumn == 1 ? i / kDepth : i % kTile;
      const int bk = p.bColumn == 1 ? i / kTile : i % kDepth, bc = p.bColumn == 1 ? i % kTile : i / kDepth;
      float left = 0, right = 0;
      if (ak < depth && firstRow + ar < p.m) left = a[at[0] + (firstRow + ar) * p.aRow + (first + ak) * p.aColumn];
      if (bk < depth && firstColumn + bc < p.n) right = b[at[1] + (first + bk) * p.bRow + (firstColumn + bc) * p.bColumn];
      aTile[ak * (kTile + 1) + ar] = left;
      bTile[bk * (kTile + 1) + bc] = right;
    }
    gpu::syncThreads();
    if (firstRow + row < p.m && firstColumn + column < p.n)
      for (int k = 0; k < depth; ++k) {
        float left[kPart], right[kPart];
        for (int i = 0; i < kPart; ++i) left[i] = aTile[k * (kTile + 1) + row + i * kSide];
        for (int j = 0; j < kPart; ++j) right[j] = bTile[k * (kTile + 1) + column + j * kSide];
        for (int i = 0; i < kPart; ++i)
          for (int j = 0; j < kPart; ++j) sums[i][j] += left[i] * right[j];
      }
    gpu::syncThreads();
  }
  for (int i = 0; i < kPart; ++i)
    for (int j = 0; j < kPart; ++j) {
      const std::int64_t r = firstRow + row + i * kSide, q = firstColumn + column + j * kSide;
      if (r >= p.m || q >= p.n) continue;
      float value = p.alpha * sums[i][j];
      if (c.present()) value += p.beta * c[r * p.cRow + q * p.cColumn];
      const std::int64_t place = at[2] + r * p.yRow + q * p.yColumn;
      if (addend.present()) value += addend[place];
      y[place] = p.relu && value < 0 ? 0.0F : value;
    }
}

Result<std::unique_ptr<Kernel>> makeOf(const KernelSpec& spec, float beta, std::int64_t cRow, std::int64_t cColumn) {
  SS_ASSIGN(MatMulShape s, matMulShape(spec.inputs[0].dims, spec.inputs[1].dims, spec.attrs));
  mergeBatches(s);
  if (s.k == 0) return notTaken(spec, "sums of nothing");
  Params p;
  p.m = s.m, p.n = s.n, p.k = s.k;
  p.aStart = s.aStart, p.bStart = s.bStart;
  p.aRow = s.aRow, p.aColumn = s.aColumn;
  p.bRow = s.bRow, p.bColumn = s.bColumn;
  p.yRow = s.yRow, p.yColumn = s.yColumn;
  p.cRow = cRow, p.cColumn = cColumn;
  p.alpha = spec.attrs.real("alpha", 1.0F);
  p.beta = beta;
  p.relu = spec.attrs.text("activation", "") == "Relu";
  p.batches = s.batches();
  for (std::size_t i = 0; i < s.batch.size(); ++i) {
    const std::int64_t strides[3] = {s.aStrides[i], s.bStrides[i], s.yStrides[i]};
    if (!p.batch.add(s.batch[i], strides)) return notTaken(spec, "more than eight batch axes");
  }
  const bool hasC = spec.inputPresent(2), hasAddend = spec.inputPresent(3);
  // Small results in small tiles: more blocks, and fewer threads without work.
  const std::int64_t shorter = std::min(p.m, p.n);
  const int part = shorter > 32 ? 4 : shorter > 16 ? 2 : 1;
  const auto kernel = part == 4   ? gpu::function<products<4>>
                      : part == 2 ? gpu::function<products<2>>
                                  : gpu::function<products<1>>;
  const std::int64_t blocks = p.batches * blocksFor(p.m, part * kSide) * blocksFor(p.n, part * kSide);
  const auto form = libraryForm(spec);
  const std::string name =
      "tiles of " + std::to_string(part * kSide) + (form && form->product.tf32 ? ", or cuBLASLt in TF32" : "");
  return makeLaunched(name, [=](Launcher& gpu) -> Status {
    if (form) {
      SS_ASSIGN(const bool done, runByLibrary(*form, gpu.call()));
      if (done) return {};
    }
    const auto c = hasC ? gpu.in<float>(2) : Global<const float>();
    const auto addend = hasAddend ? gpu.in<float>(3) : Global<const float>();
    return gpu.run("product", kernel, blocks, kSide * kSide, gpu.in<float>(0), gpu.in<float>(1), c, addend,
                   gpu.out<float>(0), p);
  });
}

Status checkOperands(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesInput(spec, 1) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  for (std::size_t i = 2; i < spec.inputs.size(); ++i)
    if (spec.inputPresent(i) && !takesInput(spec, i)) return notTaken(spec, "an addend other than float32");
  return {};
}

bool isAllLow(const KernelSpec& spec) {
  const auto low = [](const OperandSpec& operand) { return operand.dtype == DType::kUndefined || isLow(operand.dtype); };
  return canBeConverted(spec) && std::ranges::all_of(spec.inputs, low) && std::ranges::all_of(spec.outputs, low);
}

}  // namespace product_cu

// a, b, bias? [columns], addend? [as y]
Result<std::unique_ptr<Kernel>> makeProduct(const KernelSpec& spec) {
  if (isAllLow(spec)) {
    SS_ASSIGN(auto wide, makeProduct(widened(spec)));
    return makeLowProduct(spec, std::move(wide));
  }
  SS_TRY(checkOperands(spec));
  return makeOf(spec, 1, 0, 1);
}

Result<std::unique_ptr<Kernel>> makeGemm(const KernelSpec& spec) {
  if (isAllLow(spec)) {
    SS_ASSIGN(auto wide, makeGemm(widened(spec)));
    return makeLowProduct(spec, std::move(wide));
  }
  SS_TRY(checkOperands(spec));
  std::int64_t cRow = 0, cColumn = 0;
  if (spec.inputPresent(2)) {
    const Dims& c = spec.inputs[2].dims;
    if (!c.empty() && c.back() != 1) cColumn = 1;
    if (c.size() > 1 && c[0] != 1) cRow = c[1];
  }
  return makeOf(spec, spec.attrs.real("beta", 1.0F), cRow, cColumn);
}

// a, b, bias? [columns], x? [as y] → y, before? [as y] or sums? [rows of a, or columns of b]
Result<std::unique_ptr<Kernel>> makeEpilogueProduct(const KernelSpec& spec) {
  return makeProductWithEpilogue(spec, {makeProduct, makeElementwise, makeReduce});
}

}  // namespace stepscope::cuda

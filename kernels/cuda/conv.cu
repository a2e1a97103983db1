// Convolution and its gradients as products of matrices that nobody writes down (implicit GEMM): a block computes a tile of
// the result of one group, reading elements of x where the window puts them. Up to three spatial axes. Sums are float32 over
// k in its order; the weight gradient, whose k runs over the batch, is cut into parts by the shape alone, which are joined
// in double.
//
//   forward            y[m, (n, o)]   = sum over (c, t) of w[m, c, t] · x[n, c, o·stride − pad + t·dilation]   (+ bias[m])
//   input gradient     dx[c, (n, i)]  = sum over (m, t) of w[m, c, t] · dy[n, m, o that reads i through t]     (+ bias[c])
//   weight gradient    dw[m, (c, t)]  = sum over (n, o) of dy[n, m, o] · x[n, c, where o reads through t]
#include "kernels/cuda/support.h"
#include "kernels/cuda/windows.h"

namespace stepscope::cuda {
inline namespace conv_cu {

constexpr int kSide = 16;   // a block has kSide × kSide threads
constexpr int kDepth = 16;  // of a tile, along k

// Channels are those of a group.
struct Geometry : Windows {
  std::int64_t batch = 0, groups = 1, inChannels = 0, outChannels = 0;
};

// --- what is multiplied: rows × depth by depth × columns, for one group. kByDepth: neighbouring k lie side by side.

// first: w [M, C/groups, taps]; second: x [N, C, in].
struct Forward {
  static constexpr bool kSecondByDepth = false;
  SS_ANY static std::int64_t rows(const Geometry& g) { return g.outChannels; }
  SS_ANY static std::int64_t columns(const Geometry& g) { return g.batch * g.outSize; }
  SS_ANY static std::int64_t depth(const Geometry& g) { return g.inChannels * g.taps; }
  SS_DEVICE static float first(const Geometry& g, Global<const float> w, std::int64_t group, std::int64_t row,
                               std::int64_t k) {
    return w[(group * g.outChannels + row) * g.inChannels * g.taps + k];
  }
  SS_DEVICE static float second(const Geometry& g, Global<const float> x, std::int64_t group, std::int64_t k,
                                std::int64_t column) {
    const std::int64_t n = column / g.outSize, c = k / g.taps, at = g.inputAt(column % g.outSize, k % g.taps);
    if (at < 0) return 0;
    return x[((n * g.groups + group) * g.inChannels + c) * g.inSize + at];
  }
  SS_DEVICE static std::int64_t place(const Geometry& g, std::int64_t group, std::int64_t row, std::int64_t column) {
    return ((column / g.outSize * g.groups + group) * g.outChannels + row) * g.outSize + column % g.outSize;
  }
};

// first: w; second: dy [N, M, out].
struct InputGradient {
  static constexpr bool kSecondByDepth = false;
  SS_ANY static std::int64_t rows(const Geometry& g) { return g.inChannels; }
  SS_ANY static std::int64_t columns(const Geometry& g) { return g.batch * g.inSize; }
  SS_ANY static std::int64_t depth(const Geometry& g) { return g.outChannels * g.taps; }
  SS_DEVICE static float first(const Geometry& g, Global<const float> w, std::int64_t group, std::int64_t row,
                               std::int64_t k) {
    return w[((group * g.outChannels + k / g.taps) * g.inChannels + row) * g.taps + k % g.taps];
  }
  SS_DEVICE static float second(const Geometry& g, Global<const float> dy, std::int64_t group, std::int64_t k,
                                std::int64_t column) {
    const std::int64_t n = column / g.inSize, m = k / g.taps, at = g.outputAt(column % g.inSize, k % g.taps);
    if (at < 0) return 0;
    return dy[((n * g.groups + group) * g.outChannels + m) * g.outSize + at];
  }
  SS_DEVICE static std::int64_t place(const Geometry& g, std::int64_t group, std::int64_t row, std::int64_t column) {
    return ((column / g.inSize * g.groups + group) * g.inChannels + row) * g.inSize + column % g.inSize;
  }
};

// first: dy; second: x.
struct WeightGradient {
  static constexpr bool kSecondByDepth = true;
  SS_ANY static std::int64_t rows(const Geometry& g) { return g.outChannels; }
  SS_ANY static std::int64_t columns(const Geometry& g) { return g.inChannels * g.taps; }
  SS_ANY static std::int64_t depth(const Geometry& g) { return g.batch * g.outSize; }
  SS_DEVICE static float first(const Geometry& g, Global<const float> dy, std::int64_t group, std::int64_t row,
                               std::int64_t k) {
    return dy[((k / g.outSize * g.groups + group) * g.outChannels + row) * g.outSize + k % g.outSize];
  }
  SS_DEVICE static float second(const Geometry& g, Global<const float> x, std::int64_t group, std::int64_t k,
                                std::int64_t column) {
    const std::int64_t n = k / g.outSize, c = column / g.taps, at = g.inputAt(k % g.outSize, column % g.taps);
    if (at < 0) return 0;
    return x[((n * g.groups + group) * g.inChannels + c) * g.inSize + at];
  }
  SS_DEVICE static std::int64_t place(const Geometry& g, std::int64_t group, std::int64_t row, std::int64_t column) {
    return (group * g.outChannels + row) * g.inChannels * g.taps + column;
  }
};

// Which tile a block computes.
struct Tiling {
  std::int64_t down = 1, across = 1, parts = 1, depthOfPart = 0, results = 0;
};

// y: results, of each part. One block per tile, group and part.
template <typename Product, int kPart>
SS_GLOBAL void convolve(Global<const float> first, Global<const float> second, Global<const float> bias, Global<float> y,
                        Geometry g, Tiling tiling) {
  constexpr int kTile = kPart * kSide, kThreadsHere = kSide * kSide;
  SS_SHARED(float, firstTile, kDepth*(kTile + 1));   // [k][row], one more so that columns fall into different banks
  SS_SHARED(float, secondTile, kDepth*(kTile + 1));  // [k][column]
  const std::int64_t tiles = tiling.down * tiling.across, tile = gpu::blockIndex() % tiles;
  const std::int64_t group = gpu::blockIndex() / tiles % g.groups, part = gpu::blockIndex() / tiles / g.groups;
  const std::int64_t rows = Product::rows(g), columns = Product::columns(g), depth = Product::depth(g);
  const std::int64_t firstRow = tile / tiling.across * kTile, firstColumn = tile % tiling.across * kTile;
  const std::int64_t begin = part * tiling.depthOfPart, wanted = begin + tiling.depthOfPart,
                     end = wanted < depth ? wanted : depth;
  const int thread = gpu::threadIndex(), row = thread / kSide, column = thread % kSide;
  float sums[kPart][kPart] = {};
  for (std::int64_t from = begin; from < end; from += kDepth) {
    const int here = static_cast<int>(end - from < kDepth ? end - from : kDepth);
    for (int i = thread; i < kTile * kDepth; i += kThreadsHere) {
      // Neighbouring threads read neighbouring elements.
      const int ak = i % kDepth, ar = i / kDepth;
      const int bk = Product::kSecondByDepth ? i % kDepth : i / kTile, bc = Product::kSecondByDepth ? i / kDepth : i % kTile;
      float left = 0, right = 0;
      if (ak < here && firstRow + ar < rows) left = Product::first(g, first, group, firstRow + ar, from + ak);
      if (bk < here && firstColumn + bc < columns) right = Product::second(g, second, group, from + bk, firstColumn + bc);
      firstTile[ak * (kTile + 1) + ar] = left;
      secondTile[bk * (kTile + 1) + bc] = right;
    }
    gpu::syncThreads();
    if (firstRow + row < rows && firstColumn + column < columns)
      for (int k = 0; k < here; ++k) {
        float left[kPart], right[kPart];
        for (int i = 0; i < kPart; ++i) left[i] = firstTile[k * (kTile + 1) + row + i * kSide];
        for (int j = 0; j < kPart; ++j) right[j] = secondTile[k * (kTile + 1) + column + j * kSide];
        for (int i = 0; i < kPart; ++i)
          for (int j = 0; j < kPart; ++j) sums[i][j] += left[i] * right[j];
      }
    gpu::syncThreads();
  }
  for (int i = 0; i < kPart; ++i)
    for (int j = 0; j < kPart; ++j) {
      const std::int64_t r = firstRow + row + i * kSide, q = firstColumn + column + j * kSide;
      if (r >= rows || q >= columns) continue;
      float value = sums[i][j];
      if (bias.present()) value += bias[group * rows + r];
      y[part * tiling.results + Product::place(g, group, r, q)] = value;
    }
}

// y[results] = the parts: [parts, results], in their order.
SS_GLOBAL void joinConvParts(Global<const float> parts, Global<float> y, std::int64_t count, std::int64_t results) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= results) return;
  double sum = 0;
  for (std::int64_t part = 0; part < count; ++part) sum += static_cast<double>(parts[part * results + i]);
  y[i] = static_cast<float>(sum);
}

// --- host

template <typename Product>
std::unique_ptr<Kernel> makeOf(const Geometry& g, std::size_t first, std::size_t second, bool hasBias) {
  const std::int64_t rows = Product::rows(g), columns = Product::columns(g), depth = Product::depth(g);
  const std::int64_t shorter = std::min(rows, columns);
  const int part = shorter > 32 ? 4 : shorter > 16 ? 2 : 1;
  const auto kernel = part == 4   ? gpu::function<convolve<Product, 4>>
                      : part == 2 ? gpu::function<convolve<Product, 2>>
                                  : gpu::function<convolve<Product, 1>>;
  Tiling tiling;
  tiling.down = blocksFor(rows, part * kSide);
  tiling.across = blocksFor(columns, part * kSide);
  tiling.results = g.groups * rows * columns;
  // Enough parts to fill a GPU where tiles are few and sums are long.
  const std::int64_t blocks = tiling.down * tiling.across * g.groups;
  if (std::is_same_v<Product, WeightGradient> && blocks < 256) tiling.parts = std::clamp<std::int64_t>(depth / 1024, 1, 64);
  tiling.depthOfPart = (depth + tiling.parts - 1) / tiling.parts;
  const auto body = [=](Launcher& gpu) -> Status {
    const auto bias = hasBias ? gpu.in<float>(2) : Global<const float>();
    if (tiling.parts == 1)
      return gpu.run("convolution", kernel, blocks, kSide * kSide, gpu.in<float>(first), gpu.in<float>(second), bias,
                     gpu.out<float>(0), g, tiling);
    SS_TRY(gpu.run("convolution: parts", kernel, blocks * tiling.parts, kSide * kSide, gpu.in<float>(first),
                   gpu.in<float>(second), bias, gpu.room<float>(0, tiling.parts * tiling.results), g, tiling));
    return gpu.run("convolution", gpu::function<joinConvParts>, blocksFor(tiling.results), kThreads,
                   gpu.readRoom<float>(0, tiling.parts * tiling.results), gpu.out<float>(0), tiling.parts, tiling.results);
  };
  const std::size_t room = tiling.parts == 1 ? 0 : static_cast<std::size_t>(tiling.parts * tiling.results) * sizeof(float);
  return makeLaunched("convolution in tiles of " + std::to_string(part * kSide), body, room);
}

Result<Geometry> geometryOf(const KernelSpec& spec, const Result<ConvGeometry>& from) {
  for (std::size_t i = 0; i < 2; ++i)
    if (!takesInput(spec, i)) return notTaken(spec, "elements other than float32");
  if (spec.outputs.size() != 1 || !takesOutput(spec, 0) || spec.inputs.size() > 3)
    return notTaken(spec, "results other than float32, or a fused addend");
  if (!from) return tl::make_unexpected(from.error());
  const auto windows = windowsOf(from->window, from->in, from->out);
  if (!windows) return notTaken(spec, "more than three spatial axes");
  Geometry g{*windows};
  g.batch = from->batch;
  g.groups = from->groups;
  g.inChannels = from->inChannels / from->groups;
  g.outChannels = from->outChannels / from->groups;
  return g;
}

// The shape of operand k: input k, or the result where k is 2.
const Dims& dimsOf(const KernelSpec& spec, std::size_t k) { return k == 2 ? spec.outputs[0].dims : spec.inputs[k].dims; }

bool hasOperands(const KernelSpec& spec) { return spec.inputs.size() >= 2 && !spec.outputs.empty(); }

}  // namespace conv_cu

// x, w, bias? → y; with ConvTranspose the roles of x and y are exchanged.
Result<std::unique_ptr<Kernel>> makeConv(const KernelSpec& spec) {
  if (!hasOperands(spec)) return notTaken(spec, "too few operands");
  SS_ASSIGN(const Geometry g, geometryOf(spec, convGeometry(spec.attrs, dimsOf(spec, 0), dimsOf(spec, 1), dimsOf(spec, 2))));
  if (!takesOptional(spec, 2, g.groups * g.outChannels)) return notTaken(spec, "a bias of another size");
  return makeOf<Forward>(g, 1, 0, spec.inputPresent(2));
}
Result<std::unique_ptr<Kernel>> makeConvTranspose(const KernelSpec& spec) {
  if (!hasOperands(spec)) return notTaken(spec, "too few operands");
  SS_ASSIGN(const Geometry g,
            geometryOf(spec, convTransposeGeometry(spec.attrs, dimsOf(spec, 0), dimsOf(spec, 1), dimsOf(spec, 2))));
  if (!takesOptional(spec, 2, g.groups * g.inChannels)) return notTaken(spec, "a bias of another size");
  return makeOf<InputGradient>(g, 1, 0, spec.inputPresent(2));
}

// dy, w → dx
Result<std::unique_ptr<Kernel>> makeConvInputGrad(const KernelSpec& spec) {
  if (!hasOperands(spec)) return notTaken(spec, "too few operands");
  SS_ASSIGN(const Geometry g, geometryOf(spec, convGeometry(spec.attrs, dimsOf(spec, 2), dimsOf(spec, 1), dimsOf(spec, 0))));
  return makeOf<InputGradient>(g, 1, 0, false);
}
Result<std::unique_ptr<Kernel>> makeConvTransposeInputGrad(const KernelSpec& spec) {
  if (!hasOperands(spec)) return notTaken(spec, "too few operands");
  SS_ASSIGN(const Geometry g,
            geometryOf(spec, convTransposeGeometry(spec.attrs, dimsOf(spec, 2), dimsOf(spec, 1), dimsOf(spec, 0))));
  return makeOf<Forward>(g, 1, 0, false);
}

// dy, x → dw
Result<std::unique_ptr<Kernel>> makeConvWeightGrad(const KernelSpec& spec) {
  if (!hasOperands(spec)) return notTaken(spec, "too few operands");
  SS_ASSIGN(const Geometry g, geometryOf(spec, convGeometry(spec.attrs, dimsOf(spec, 1), dimsOf(spec, 2), dimsOf(spec, 0))));
  return makeOf<WeightGradient>(g, 0, 1, false);
}
Result<std::unique_ptr<Kernel>> makeConvTransposeWeightGrad(const KernelSpec& spec) {
  if (!hasOperands(spec)) return notTaken(spec, "too few operands");
  SS_ASSIGN(const Geometry g,
            geometryOf(spec, convTransposeGeometry(spec.attrs, dimsOf(spec, 1), dimsOf(spec, 2), dimsOf(spec, 0))));
  return makeOf<WeightGradient>(g, 1, 0, false);
}

}  // namespace stepscope::cuda

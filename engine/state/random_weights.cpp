#include "engine/state/random_weights.h"

#include <algorithm>
#include <cmath>

#include "kernels/random.h"

namespace stepscope {
namespace {

constexpr std::int64_t kBlocksAtOnce = 1 << 20;  // between two looks at a cancel: some milliseconds

bool isMissing(const Graph& graph, const Value& value, const State& state) {
  return graph.alive(value.id) && value.role == ValueRole::kInitializer && !value.data && !state.contains(value.name);
}

Status fill(const Tensor& tensor, const std::string& name, const RandomKey& key, int threads, const Cancel& cancel) {
  const auto rank = tensor.dims().size();
  const bool scale = rank == 1 && (name.ends_with("weight") || name.ends_with("running_var") || name.ends_with("gamma"));
  const double fan =
      rank >= 2 ? static_cast<double>(tensor.elements()) / static_cast<double>(std::max<std::int64_t>(1, tensor.dims()[0]))
                : 1;
  const double deviation = rank >= 2 ? std::min(0.02, 1 / std::sqrt(std::max(1.0, fan))) : 0;
  if (tensor.dtype() != DType::kF32 || rank < 2) {
    if (!isFloating(tensor.dtype())) return {};
    for (std::int64_t k = 0; k < tensor.elements(); ++k) {
      if (k % kBlocksAtOnce == 0) SS_TRY(cancel.check("materialise"));
      storeElement(tensor.view(), k, scale ? 1.0 : deviation * normal01(key, static_cast<std::uint64_t>(k)));
    }
    return {};
  }
  // Sums of four uniforms are near enough to a normal for weights, and cheap: one block gives four words.
  float* data = static_cast<float*>(tensor.data());
  const auto width = static_cast<float>(deviation * std::sqrt(3.0));
  const std::int64_t blocks = (tensor.elements() + 3) / 4;
  for (std::int64_t first = 0; first < blocks; first += kBlocksAtOnce) {
    SS_TRY(cancel.check("materialise"));
    const std::int64_t end = std::min(blocks, first + kBlocksAtOnce);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (std::int64_t block = first; block < end; ++block) {
      const auto words = randomBlock(key, static_cast<std::uint64_t>(block));
      for (std::int64_t k = 0; k < 4 && block * 4 + k < tensor.elements(); ++k) {
        const std::uint32_t word = words[static_cast<std::size_t>(k)];
        const float sum = static_cast<float>(word & 0xffu) + static_cast<float>(word >> 8 & 0xffu) +
                          static_cast<float>(word >> 16 & 0xffu) + static_cast<float>(word >> 24);
        data[block * 4 + k] = (sum / 510.0f - 1.0f) * width * 1.9899749f;
      }
    }
  }
  return {};
}

}  // namespace

bool lacksWeights(const Graph& graph, const State& state) {
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(graph.valueCapacity()); ++i)
    if (isMissing(graph, graph.value({i}), state)) return true;
  return false;
}

Result<std::size_t> fillMissingWeights(const Graph& graph, std::uint64_t seed, int threads, State& state,
                                       const Cancel& cancel) {
  std::size_t filled = 0;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(graph.valueCapacity()); ++i) {
    const Value& value = graph.value({i});
    if (!isMissing(graph, value, state)) continue;
    SS_TRY(state.obtain(value));
    const Tensor tensor = state.read(value.name);
    SS_TRY(fill(tensor, value.name, {seed, 0, 0x40000000u + static_cast<std::uint32_t>(i)}, threads, cancel));
    if (!state.device().onHost()) state.write(value.name, tensor.view());
    ++filled;
  }
  return filled;
}

}  // namespace stepscope

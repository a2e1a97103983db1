#include "engine/build/gradient_buckets.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <string>

namespace stepscope {

std::vector<std::size_t> readyOrder(const Graph& imported, const Graph& graph, const std::vector<ValueId>& trained) {
  std::map<std::string, std::size_t> firstUse;
  std::size_t position = 0;
  for (const NodeId id : imported.order()) {
    for (const ValueId input : imported.node(id).inputs)
      if (input) firstUse.try_emplace(imported.value(input).name, position);
    ++position;
  }
  const auto useOf = [&](std::size_t i) {
    const auto found = firstUse.find(graph.value(trained[i]).name);
    return found == firstUse.end() ? std::numeric_limits<std::size_t>::max() : found->second;
  };
  std::vector<std::size_t> order(trained.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return useOf(a) > useOf(b); });
  return order;
}

std::vector<GradientBucket> gradientBuckets(const Graph& graph, const std::vector<ValueId>& gradients,
                                            const std::vector<std::size_t>& ready, std::int64_t bytes) {
  std::vector<GradientBucket> buckets;
  DType dtype = DType::kUndefined;
  std::int64_t held = 0;
  for (const std::size_t i : ready) {
    if (!gradients[i]) continue;
    const ValueType& type = graph.value(gradients[i]).type;
    const auto dims = type.shape ? knownDims(*type.shape) : std::nullopt;
    const std::int64_t size = dims ? elementCount(*dims) * static_cast<std::int64_t>(dtypeSize(type.dtype))
                                   : std::numeric_limits<std::int64_t>::max() / 2;
    if (buckets.empty() || type.dtype != dtype || held + size > bytes) {
      buckets.emplace_back();
      held = 0;
    }
    dtype = type.dtype;
    held += size;
    buckets.back().push_back(i);
  }
  return buckets;
}

}  // namespace stepscope

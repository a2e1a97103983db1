#include "engine/build/gradient_buckets.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <string>

namespace stepscope {

std::vector<ParameterUse> parameterUses(const Graph& imported, const Graph& graph, const std::vector<ValueId>& trained) {
  std::map<std::string, ParameterUse> found;
  std::size_t position = 0;
  for (const NodeId id : imported.order()) {
    for (const ValueId input : imported.node(id).inputs)
      if (input)
        found.try_emplace(imported.value(input).name, ParameterUse{position, position}).first->second.last = position;
    ++position;
  }
  std::vector<ParameterUse> uses;
  for (const ValueId id : trained) {
    const auto use = found.find(graph.value(id).name);
    uses.push_back(use == found.end() ? ParameterUse{0, position} : use->second);
  }
  return uses;
}

std::vector<std::size_t> readyOrder(const std::vector<ParameterUse>& uses) {
  std::vector<std::size_t> order(uses.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t i) { return uses[i].first; });
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

#include "engine/onnx/shared_initializers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

namespace stepscope {
namespace {

constexpr std::size_t kModulesShown = 5;

bool allEqual(const Tensor& tensor) {
  const auto* bytes = static_cast<const char*>(tensor.data());
  const std::size_t size = dtypeSize(tensor.dtype());
  for (std::size_t at = size; at < tensor.bytes(); at += size)
    if (std::memcmp(bytes, bytes + at, size) != 0) return false;
  return true;
}

bool suspicious(const Value& value) {
  if (value.role != ValueRole::kInitializer || !isFloating(value.type.dtype)) return false;
  if (!value.type.shape || value.type.shape->empty()) return false;
  return value.data ? allEqual(*value.data) : value.type.shape->size() == 1;
}

// Whether `path` is the module `owner` in a later call: TorchScript's exporter writes "b.norm_1" for the second one of
// "b.norm".
bool isCallOf(std::string_view path, std::string_view owner) {
  while (!owner.empty()) {
    const auto part = owner.substr(0, owner.find('.'));
    auto scope = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(scope.size() + 1, path.size()));
    owner.remove_prefix(std::min(part.size() + 1, owner.size()));
    if (!scope.starts_with(part)) return false;
    scope.remove_prefix(part.size());
    if (scope.empty()) continue;
    if (scope.size() < 2 || scope[0] != '_' || scope.find_first_not_of("0123456789", 1) != std::string_view::npos)
      return false;
  }
  return path.empty();
}

}  // namespace

std::vector<LoadWarning> sharedInitializerWarnings(const Graph& graph) {
  std::vector<LoadWarning> warnings;
  const auto uses = graph.uses();
  for (std::size_t i = 0; i < graph.valueCapacity(); ++i) {
    if (uses[i].size() < 2) continue;
    const Value& value = graph.value(ValueId{static_cast<std::int32_t>(i)});
    if (!suspicious(value)) continue;
    const std::string_view owner = std::string_view(value.name).substr(0, value.name.rfind('.'));
    std::set<std::string> modules;
    for (const Use& use : uses[i]) {
      const Provenance& provenance = graph.node(use.node).provenance;
      if (!provenance.modulePath.empty() && !provenance.modulePathInferred)
        modules.insert(
            std::string(isCallOf(provenance.modulePath, owner) ? owner : std::string_view(provenance.modulePath)));
    }
    if (modules.size() < 2) continue;
    std::string names;
    std::size_t shown = 0;
    for (const auto& module : modules)
      if (shown++ < kModulesShown) names += (names.empty() ? "" : ", ") + module;
    if (modules.size() > kModulesShown) names += fmt::format(" and {} more", modules.size() - kModulesShown);
    warnings.push_back(
        {"initializer '" + value.name + "'",
         fmt::format("shared by {} modules ({}), which then train as one parameter; the exporter probably merged "
                     "initializers of equal contents: export with optimize=False or deduplication off",
                     modules.size(), names)});
  }
  return warnings;
}

}  // namespace stepscope

#include "engine/ops/op_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace stepscope {
namespace {

std::string keyOf(std::string_view domain, std::string_view name) {
  std::string key;
  key.reserve(domain.size() + name.size() + 1);
  key.append(domain) += '\n';
  return key.append(name);
}

// What an op leaves open that every op says; empty when nothing.
std::string_view missing(const OpDef& op) {
  if (op.name.empty()) return "no name";
  if (op.sinceVersion < 1) return "a since-version below 1";
  if (op.inferShape == nullptr) return "no shape rule";
  if (op.category == OpCategory::kUnset) return "no category";
  if (op.precision == Precision::kUnset) return "no precision class";
  if (!op.hostInputs) return "no word about which inputs are read on the host";
  if (op.gradient == nullptr && op.noGradientReason.empty()) return "neither a gradient nor the reason for having none";
  if (op.sideEffect != SideEffect::kNone && op.recompute != Recompute::kNever)
    return "a side effect, which recompute would repeat";
  return {};
}

}  // namespace

Status OpRegistry::add(std::span<const OpDef* const> ops) {
  for (const OpDef* op : ops) {
    const auto label = [&] { return fmt::format("op '{}{}{}'", op->domain, op->domain.empty() ? "" : ".", op->name); };
    if (const std::string_view what = missing(*op); !what.empty())
      return invalid(fmt::format("{}: found {}; expected a complete definition (engine/ops/op_def.h)", label(), what));
    std::vector<const OpDef*>& versions = byName_[keyOf(op->domain, op->name)];
    const auto place = std::find_if(versions.begin(), versions.end(),
                                    [&](const OpDef* other) { return other->sinceVersion <= op->sinceVersion; });
    if (place != versions.end() && (*place)->sinceVersion == op->sinceVersion)
      return invalid(fmt::format("{}: found a second definition since version {}; expected one", label(), op->sinceVersion));
    versions.insert(place, op);
    all_.push_back(op);
  }
  return {};
}

const OpDef* OpRegistry::find(std::string_view domain, std::string_view name, int version) const {
  const auto it = byName_.find(keyOf(domain, name));
  if (it == byName_.end()) return nullptr;
  for (const OpDef* op : it->second)
    if (op->sinceVersion <= version) return op;
  return nullptr;
}

}  // namespace stepscope

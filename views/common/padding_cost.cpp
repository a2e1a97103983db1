// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/padding_cost.h"

#include <algorithm>
#include <charconv>

#include "views/common/median_times.h"

namespace stepscope {
namespace {

std::vector<std::int64_t> extentsOf(const snapshot::Value& value) {
  std::vector<std::int64_t> extents;
  for (const std::string& dim : value.dims()) {
    std::int64_t extent = -1;
    std::from_chars(dim.data(), dim.data() + dim.size(), extent);
    extents.push_back(extent);
  }
  return extents;
}

struct Places {
  std::int64_t rows = 0, length = 0, classes = 0;  // classes: 0 for padding

  bool in(const snapshot::Value& value) const {
    const std::vector<std::int64_t> e = extentsOf(value);
    if (e.empty() || (classes > 0 && e.back() != classes)) return false;
    if (e[0] == rows * length) return rows > 1 && length > 1;
    return e[0] == rows && (length == 1 || std::find(e.begin() + 1, e.end(), length) != e.end());
  }
};

// The last extent of what the loss reads.
std::int64_t classesOf(const SnapshotStore& store) {
  for (const auto& node : store.graph()->graph().nodes()) {
    if (node.op().find("CrossEntropy") == std::string::npos || node.inputs_size() == 0) continue;
    if (const snapshot::Value* logits = store.graph()->value(node.inputs(0)); logits && logits->dims_size() > 1)
      return extentsOf(*logits).back();
  }
  return 0;
}

}  // namespace

PaddingCost PaddingCost::of(const SnapshotStore& store) {
  PaddingCost cost;
  if (!store.graph() || !store.plan() || store.steps().empty()) return cost;
  const PlanSnapshot& plan = *store.plan();
  cost.instructions.assign(static_cast<std::size_t>(plan.size()), -1);
  const std::vector<std::int64_t> times = medianTimes(store);
  for (const std::int64_t ns : times) cost.stepNs += std::max<std::int64_t>(0, ns);
  for (const snapshot::InputDensity& density : store.steps().back()->densities()) {
    if (density.total() <= 0 || density.rows() <= 0 || density.valid() >= density.total()) continue;
    Of found;
    found.input = density.input();
    found.labels = density.kind() == "labels";
    found.share = 1 - static_cast<double>(density.valid()) / static_cast<double>(density.total());
    found.length = density.total() / density.rows();
    found.longest = density.longest();
    for (const int id : store.graph()->graph().inputs())
      if (const auto* v = store.graph()->value(id); v && v->name() == density.input()) found.value = id;
    const Places places{density.rows(), found.length, found.labels ? classesOf(store) : 0};
    if (found.labels && places.classes <= 0) continue;
    // Token ids and their mask tell of the same places.
    const bool told = std::any_of(cost.inputs.begin(), cost.inputs.end(), [&](const Of& other) {
      return other.labels == found.labels && other.length == found.length && other.share == found.share;
    });
    if (told) continue;
    std::int64_t touched = 0;
    for (int i = 0; i < plan.size(); ++i) {
      const auto works = [&](const auto& operands) {
        return std::any_of(operands.begin(), operands.end(), [&](const snapshot::Operand& o) {
          const snapshot::Value* value = store.graph()->value(o.value());
          return value && places.in(*value);
        });
      };
      const std::int64_t ns = times[static_cast<std::size_t>(i)];
      if (ns < 0 || !(works(plan.instruction(i)->outputs()) || works(plan.instruction(i)->inputs()))) continue;
      touched += ns;
      double& wasted = cost.instructions[static_cast<std::size_t>(i)];
      wasted = std::max(wasted, found.share * static_cast<double>(ns));  // a place is spoiled once
    }
    found.ns = static_cast<std::int64_t>(found.share * static_cast<double>(touched));
    if (!found.labels && found.longest > 0 && found.longest < found.length)
      found.cutNs = static_cast<std::int64_t>((1 - static_cast<double>(found.longest) / static_cast<double>(found.length)) *
                                              static_cast<double>(touched));
    cost.inputs.push_back(std::move(found));
  }
  std::stable_sort(cost.inputs.begin(), cost.inputs.end(), [](const Of& a, const Of& b) { return a.ns > b.ns; });
  return cost;
}

}  // namespace stepscope

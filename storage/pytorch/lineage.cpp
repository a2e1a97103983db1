#include "storage/pytorch/lineage.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "storage/pytorch/operator_kinds.h"
#include "storage/queries.h"

namespace stepscope::storage {
namespace {

using Shape = std::vector<std::int64_t>;

Shape extents(const snapshot::Value& value) {
  Shape out;
  for (const std::string& text : value.dims()) {
    std::int64_t extent = 0;
    if (const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
        error != std::errc() || end != text.data() + text.size())
      return {};
    out.push_back(extent);
  }
  return out;
}
}  // namespace

Result<Lineage> Lineage::read(const Project& project, std::int64_t run) {
  Lineage out;
  for (const char* phase :
       {"attach loss", "pre-grad passes", "gradient", "post-grad passes", "optimizer", "specialise", "recompute"}) {
    Result<snapshot::Graph> graph = readGraph(project, run, phase);
    if (!graph && graph.error().code == ErrorCode::kNotFound) continue;
    SS_STORE_TRY(graph);
    if (!out.first_) out.imported_ = *graph, out.first_ = true;
    out.last_ = *graph;
    for (const snapshot::Node& node : graph->nodes()) out.nodes_[node.id()] = node;
    for (const snapshot::Value& value : graph->values()) out.values_[value.id()] = value;
  }
  if (!out.first_)
    return fail(ErrorCode::kNotFound, fmt::format("run '{}': no graph in the project; expected a run that was built", run));
  for (const snapshot::Node& node : out.imported_.nodes()) out.own_.insert(node.id());
  return out;
}

std::vector<ImportedNode> Lineage::importedNodes() const {
  std::map<std::int32_t, const snapshot::Node*> producer;
  std::map<std::int32_t, const snapshot::Value*> values;
  for (const snapshot::Value& v : imported_.values()) values[v.id()] = &v;
  std::vector<ImportedNode> out;
  for (const snapshot::Node& node : imported_.nodes()) {
    for (const std::int32_t value : node.outputs()) producer[value] = &node;
    ImportedNode& one = out.emplace_back();
    one.id = node.id();
    one.op = node.op();
    one.name = node.name();
    one.module = node.provenance().module_path();
    if (node.inputs_size() > 0) one.inputElements = elements(node.inputs(0));
    const int weight = weightInput(node.op());
    std::int32_t value = weight >= 0 && weight < node.inputs_size() ? node.inputs(weight) : -1;
    for (int hops = 0; hops < 8 && producer.contains(value) && producer[value]->inputs_size() > 0; ++hops)
      value = producer[value]->inputs(0);
    const auto found = values.find(value);
    if (weight >= 0 && found != values.end() && found->second->role() == snapshot::INITIALIZER) {
      one.weight = extents(*found->second);
      std::ranges::sort(one.weight);
    }
  }
  return out;
}

std::set<std::int32_t> Lineage::roots(std::int32_t node) const {
  std::set<std::int32_t> out, seen;
  std::vector<std::int32_t> open = {node};
  while (!open.empty()) {
    const std::int32_t at = open.back();
    open.pop_back();
    const auto found = nodes_.find(at);
    if (found == nodes_.end() || !seen.insert(at).second) continue;
    // A fused node may keep the id of one that it was made from.
    if (own_.contains(at)) out.insert(at);
    const snapshot::Provenance& from = found->second.provenance();
    if (from.sources_size() == 0 && own_.contains(from.imported())) out.insert(from.imported());
    open.insert(open.end(), from.sources().begin(), from.sources().end());
  }
  return out;
}
std::int32_t Lineage::imported(std::int32_t node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? -1 : found->second.provenance().imported();
}

std::int64_t Lineage::elements(std::int32_t value) const {
  const auto found = values_.find(value);
  if (found == values_.end() || found->second.dims().empty()) return 0;
  const Shape shape = extents(found->second);
  std::int64_t out = shape.empty() ? 0 : 1;
  for (const std::int64_t extent : shape) out = extent > 0 && out < (std::int64_t{1} << 40) / extent ? out * extent : 0;
  return out;
}

}  // namespace stepscope::storage

#include "storage/pytorch/checkpoint_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "storage/pytorch/lineage.h"
#include "storage/pytorch/operator_kinds.h"

namespace stepscope::storage {
namespace {

bool within(const std::string& path, const std::string& module) {
  return path == module || (path.size() > module.size() && path.starts_with(module) && path[module.size()] == '.');
}

// A path and those around it, the outermost first.
std::vector<std::string> modulesAround(const std::string& path) {
  std::vector<std::string> out;
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
    out.push_back(path.substr(0, dot));
  out.push_back(path);
  return out;
}

class Chooser {
 public:
  explicit Chooser(const Lineage& lineage) : lineage_(lineage) {
    for (const snapshot::Node& node : lineage.last().nodes()) {
      if (node.phase() == snapshot::FORWARD) forward_.push_back(&node);
      if (node.phase() == snapshot::RECOMPUTE) again_.push_back(&node);
      for (const std::int32_t value : node.inputs()) readers_[value].push_back(&node);
    }
  }

  bool empty() const { return again_.empty(); }

  CheckpointPolicy choose() {
    CheckpointPolicy out;
    std::map<std::pair<std::string, bool>, std::size_t> place;
    for (const snapshot::Node* node : forward_) {
      const std::int64_t copies = copiesOf(node->id());
      if (copies == 0) continue;
      const std::string region = regionOf(*node);
      if (region.empty()) {
        out.leftOut.push_back(node->name());
        continue;
      }
      std::string module;
      for (const std::string& around : modulesAround(region)) {
        if (around.find('.') == std::string::npos || !keepsNothingInside(around))
          continue;  // the outermost name is the model
        module = around;
        break;
      }
      const bool whole = !module.empty();
      const auto [found, isNew] = place.try_emplace({whole ? module : region, whole}, out.modules.size());
      if (isNew) out.modules.push_back({whole ? module : region, {}, {}, 0});
      CheckpointEntry& entry = out.modules[found->second];
      entry.nodes += copies;
      if (whole) continue;
      addNames(*node, entry.operators);
      for (const snapshot::Node* other : forward_)
        if (isNew && within(other->provenance().module_path(), region) && copiesOf(other->id()) == 0 && isKept(*other))
          addNames(*other, entry.kept);
    }
    return out;
  }

 private:
  std::int64_t copiesOf(std::int32_t forward) const {
    return std::ranges::count_if(again_, [&](const snapshot::Node* n) { return n->provenance().forward() == forward; });
  }

  bool readIn(const snapshot::Node& node, bool forward) const {
    for (const std::int32_t value : node.outputs())
      if (const auto found = readers_.find(value); found != readers_.end())
        for (const snapshot::Node* reader : found->second)
          if ((reader->phase() == snapshot::FORWARD) == forward) return true;
    return false;
  }
  // What the forward pass made of it stays until the backward phase.
  bool isKept(const snapshot::Node& node) const { return readIn(node, false); }

  bool isReadAgain(std::int32_t forward, int output) const {
    return std::ranges::any_of(again_, [&](const snapshot::Node* n) {
      return n->provenance().forward() == forward && output < n->outputs_size() && readers_.contains(n->outputs(output));
    });
  }

  // The smallest module around the node and, where its results are dropped, around what reads them: PyTorch keeps the
  // arguments of operators, so they are dropped only where their readers are repeated too. Empty: there is none.
  std::string regionOf(const snapshot::Node& node) const {
    std::string region = node.provenance().module_path();
    for (int k = 0; k < node.outputs_size(); ++k) {
      const auto found = readers_.find(node.outputs(k));
      if (isKept(node) || found == readers_.end() || !isReadAgain(node.id(), k)) continue;
      for (const snapshot::Node* reader : found->second)
        while (!region.empty() && reader->phase() == snapshot::FORWARD &&
               !within(reader->provenance().module_path(), region))
          region.resize(region.find('.') == std::string::npos ? 0 : region.rfind('.'));
    }
    return region.starts_with('_') ? std::string() : region;  // the loss
  }

  bool keepsNothingInside(const std::string& module) const {
    for (const snapshot::Node* node : forward_) {
      if (!within(node->provenance().module_path(), module) || !isKept(*node)) continue;
      bool handedOn = false;
      for (const std::int32_t value : node->outputs())
        if (const auto found = readers_.find(value); found != readers_.end())
          for (const snapshot::Node* reader : found->second)
            handedOn =
                handedOn || (reader->phase() == snapshot::FORWARD && !within(reader->provenance().module_path(), module));
      if (!handedOn) return false;
    }
    return true;
  }

  void addNames(const snapshot::Node& node, std::vector<std::string>& names) const {
    std::vector<std::string> found = torchNames(node.op());
    if (found.empty())
      for (const std::int32_t root : lineage_.roots(node.id()))
        for (const ImportedNode& imported : imported_)
          if (imported.id == root)
            for (std::string& name : torchNames(imported.op)) found.push_back(std::move(name));
    for (std::string& name : found)
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }

  const Lineage& lineage_;
  const std::vector<ImportedNode> imported_ = lineage_.importedNodes();
  std::vector<const snapshot::Node*> forward_, again_;
  std::map<std::int32_t, std::vector<const snapshot::Node*>> readers_;  // of a value
};

}  // namespace

Result<CheckpointPolicy> checkpointPolicy(const Project& project, std::int64_t run) {
  SS_STORE_ASSIGN(const Lineage lineage, Lineage::read(project, run));
  Chooser chooser(lineage);
  if (chooser.empty())
    return fail(
        ErrorCode::kNotFound,
        fmt::format("run '{}': computes nothing again; expected one with option recompute.plan or recompute.budget", run));
  return chooser.choose();
}

std::string checkpointPolicyJson(const CheckpointPolicy& policy, const std::string& model, std::int64_t run) {
  nlohmann::ordered_json out = {{"format", "stepscope checkpoint policy"}, {"version", 1}, {"model", model}, {"run", run}};
  out["modules"] = nlohmann::ordered_json::array();
  for (const CheckpointEntry& entry : policy.modules) {
    nlohmann::ordered_json one = {{"module", entry.module}};
    if (!entry.operators.empty()) {
      one["operators"] = entry.operators;
      one["kept"] = entry.kept;
    }
    out["modules"].push_back(std::move(one));
  }
  if (!policy.leftOut.empty()) out["left_out"] = policy.leftOut;
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace stepscope::storage

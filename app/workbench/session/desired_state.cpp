// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/desired_state.h"

#include <algorithm>
#include <map>
#include <optional>

#include "views/common/format.h"

namespace stepscope {
namespace {

using B = snapshot::Breakpoint;

bool named(const B& b) { return b.condition_case() == B::kNode || b.condition_case() == B::kInstruction; }

// What an instruction computes first.
std::string nameOf(int instruction, const ShownPlan& plan) {
  const auto* in = plan.plan ? plan.plan->instruction(instruction) : nullptr;
  if (!in || !plan.graph) return {};
  for (const auto& output : in->outputs())
    if (const auto* value = plan.graph->value(output.value()); value && !value->name().empty()) return value->name();
  return {};
}

// Names of the graph, looked up when the first is wanted.
class Names {
 public:
  explicit Names(const ShownPlan& plan) : plan_(plan) {}

  int value(const std::string& name) {
    if (!read_ && plan_.graph) {
      for (const auto& value : plan_.graph->graph().values()) values_.emplace(value.name(), value.id());
      for (const auto& node : plan_.graph->graph().nodes()) nodes_.emplace(node.name(), node.id());
    }
    read_ = true;
    const auto found = values_.find(name);
    return name.empty() || found == values_.end() ? -1 : found->second;
  }
  int node(const std::string& name) {
    (void)value({});
    const auto found = nodes_.find(name);
    return name.empty() || found == nodes_.end() ? -1 : found->second;
  }
  int instruction(const std::string& made) {
    const int id = value(made);
    return id >= 0 && plan_.plan ? plan_.plan->producerOfValue(id) : -1;
  }

 private:
  const ShownPlan& plan_;
  bool read_ = false;
  std::map<std::string, int> values_, nodes_;
};

bool moveNode(B& b, const ShownPlan& before, const ShownPlan& after, Names& names, QString* name) {
  const auto* node = before.graph->node(b.node());
  const auto* there = after.graph ? after.graph->node(b.node()) : nullptr;
  *name = node ? format::visible(node->name()) : QString::number(b.node());
  if (node && there && node->name() == there->name()) return true;
  const int place = node ? names.node(node->name()) : -1;
  b.set_node(place);
  return place >= 0;
}

bool moveInstruction(B& b, const ShownPlan& before, const ShownPlan& after, Names& names, QString* name) {
  const auto* in = before.plan->instruction(b.instruction());
  const auto* there = after.plan ? after.plan->instruction(b.instruction()) : nullptr;
  const std::string made = nameOf(b.instruction(), before);
  *name = in ? format::visible(in->label()) : QString::number(b.instruction());
  if (in && there && in->label() == there->label() && made == nameOf(b.instruction(), after)) return true;
  const int place = names.instruction(made);
  b.set_instruction(place);
  return place >= 0;
}

}  // namespace

bool same(const std::vector<B>& a, const std::vector<B>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const B& x, const B& y) { return x.SerializeAsString() == y.SerializeAsString(); });
}

Selection selectionIn(const Selection& selection, const ShownPlan& before, const ShownPlan& after) {
  if (!before.graph || !after.graph || (before.graph == after.graph && before.plan == after.plan)) return selection;
  Names names(after);
  const auto there = [&](int id) {
    const auto* node = before.graph->node(id);
    return node ? names.node(node->name()) : -1;
  };
  Selection moved;
  moved.file = selection.file;
  moved.line = selection.line;
  moved.node = there(selection.node);
  if (const auto* value = before.graph->value(selection.value)) moved.value = names.value(value->name());
  if (moved.node < 0 && moved.value < 0 && before.plan)
    moved.instruction = names.instruction(nameOf(selection.instruction, before));
  if (moved.node < 0 || !selection.group) return moved;
  std::vector<int> nodes;
  for (const int id : selection.group->nodes())
    if (const int node = there(id); node >= 0) nodes.push_back(node);
  moved.group = NodeGroup::make(selection.group->name(), std::move(nodes));
  return moved;
}

void DesiredState::setBreakpoints(std::vector<B> breakpoints) {
  breakpoints_ = std::move(breakpoints);
  for (const B& b : breakpoints_) nextBreakpoint_ = std::max(nextBreakpoint_, b.id() + 1);
  for (B& b : breakpoints_)
    if (b.id() == 0) b.set_id(nextBreakpoint_++);
}

std::vector<int> DesiredState::here(const std::vector<Value>& values) {
  std::vector<int> ids;
  for (const Value& value : values)
    if (value.id >= 0) ids.push_back(value.id);
  return ids;
}

void DesiredState::set(std::vector<Value>& values, const std::vector<int>& ids, const ShownPlan& shown) {
  std::erase_if(values,
                [&ids](const Value& v) { return v.id >= 0 && std::find(ids.begin(), ids.end(), v.id) == ids.end(); });
  for (const int id : ids) {
    if (id < 0 || std::any_of(values.begin(), values.end(), [id](const Value& v) { return v.id == id; })) continue;
    const auto* value = shown.graph ? shown.graph->value(id) : nullptr;
    values.push_back({value ? value->name() : std::string(), id});
  }
}

void DesiredState::setOptions(const OptionSettings& settings) {
  for (const auto& setting : settings) {
    std::erase_if(options_, [&setting](const auto& o) { return o.first == setting.first; });
    options_.push_back(setting);
  }
}

void DesiredState::giveBack(const OptionSettings& settings) {
  OptionSettings all = settings;
  for (const auto& newer : options_) {
    std::erase_if(all, [&newer](const auto& o) { return o.first == newer.first; });
    all.push_back(newer);
  }
  options_ = std::move(all);
}

std::vector<B> DesiredState::movedByWorker(const std::vector<B>& knew, const std::vector<B>& now) const {
  std::vector<B> moved;
  for (const B& before : knew) {
    const auto at = std::find_if(now.begin(), now.end(), [&before](const B& b) { return b.id() == before.id(); });
    const bool still =
        std::any_of(breakpoints_.begin(), breakpoints_.end(), [&before](const B& b) { return same({b}, {before}); });
    if (still && at != now.end()) moved.push_back(*at);
  }
  return moved;
}

QStringList DesiredState::moveTo(const ShownPlan& before, const ShownPlan& after, const std::vector<B>& moved) {
  QStringList lost;
  Names names(after);
  std::vector<B> kept;
  for (B b : breakpoints_) {
    const auto known = std::find_if(moved.begin(), moved.end(), [&b](const B& m) { return m.id() == b.id(); });
    if (known != moved.end()) {
      kept.push_back(*known);
      continue;
    }
    if (named(b) && before.graph && before.plan && !(before.graph == after.graph && before.plan == after.plan)) {
      QString name;
      if (!(b.condition_case() == B::kNode ? moveNode(b, before, after, names, &name)
                                           : moveInstruction(b, before, after, names, &name))) {
        lost << name;
        continue;
      }
    }
    kept.push_back(std::move(b));
  }
  breakpoints_ = std::move(kept);
  for (auto* values : {&watched_, &pinned_})
    for (Value& value : *values) {
      const bool was = value.id >= 0;
      const auto* there = after.graph ? after.graph->value(value.id) : nullptr;
      if (there && there->name() == value.name) continue;
      value.id = names.value(value.name);
      if (was && value.id < 0) lost << format::visible(value.name);
    }
  return lost;
}

void DesiredState::leaveModel() {
  std::erase_if(breakpoints_, [](const B& b) { return named(b) || b.condition_case() == B::kPredicate; });
  watched_.clear();
  pinned_.clear();
  options_.clear();
}

}  // namespace stepscope

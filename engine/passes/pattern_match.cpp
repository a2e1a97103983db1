#include "engine/passes/pattern_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/passes/pattern.h"
#include "engine/passes/scalar.h"

namespace stepscope {

ValueId PatternMatch::value(std::string_view name) const {
  const auto it = values.find(name);
  return it == values.end() ? ValueId{} : it->second;
}

double PatternMatch::number(std::string_view name) const {
  const auto it = numbers.find(name);
  return it == numbers.end() ? 1 : it->second;
}

std::optional<PatternMatch> PatternMatcher::match(std::string_view rule, ValueId value) {
  furthest_ = {};
  forms_ = 0;
  PatternMatch found;
  if (!matchRule(rule, value, found)) return std::nullopt;
  return found;
}

bool PatternMatcher::matchRule(std::string_view name, ValueId value, PatternMatch& found) {
  const auto* alternatives = patterns_.rule(name);
  return alternatives != nullptr && std::ranges::any_of(*alternatives, [&](const PatternForm& alternative) {
           PatternMatch own = found;
           if (!matchForm(alternative, value, own)) return false;
           found = std::move(own);
           return true;
         });
}

bool PatternMatcher::matchForm(const PatternForm& form, ValueId value, PatternMatch& found) {
  constexpr std::size_t kMostForms = 100000;
  if (++forms_ > kMostForms) return false;
  if (!value) return form.optional;
  switch (form.kind) {
    case PatternForm::Kind::kNode:
      if (!matchNode(form, value, found)) return false;
      break;
    case PatternForm::Kind::kName:
      if (!patterns_.rule(form.name))
        return bind(form.name, value, found) && (form.as.empty() || bind(form.as, value, found));
      if (!matchRule(form.name, value, found)) return false;
      break;
    case PatternForm::Kind::kFactor: {
      const auto factor = constantScalar(inference_, value);
      if (!factor || (form.divides && *factor == 0)) return failed(found, value, "a constant number");
      double& number = found.numbers.try_emplace(form.name, 1).first->second;
      number = form.divides ? number / *factor : number * *factor;
      return true;
    }
    case PatternForm::Kind::kNumber: {
      // Exporters store an infinity as an initializer; nobody trains it.
      const Tensor* stored = std::isinf(form.number) ? inference_.shapeConstant(value) : nullptr;
      const auto number = stored && stored->elements() == 1 && isFloating(stored->dtype())
                              ? std::optional(elementAsDouble(stored->view(), 0))
                              : constantScalar(inference_, value);
      return (number && *number == form.number) || failed(found, value, fmt::format("the number {}", form.number));
    }
  }
  return form.as.empty() || bind(form.as, value, found);
}

bool PatternMatcher::matchNode(const PatternForm& form, ValueId value, PatternMatch& found) {
  const NodeId made = graph_.value(value).producer;
  if (!made || !isOp(graph_.node(made), form.name) || graph_.node(made).output(0) != value)
    return failed(found, value, form.name);
  const Node& node = graph_.node(made);
  if (std::ranges::find(found.nodes, made) == found.nodes.end()) found.nodes.push_back(made);
  if (form.marked) found.marked = made;
  for (const auto& [name, wanted] : form.attributes) {
    const auto& shape = graph_.value(value).type.shape;
    const bool last = wanted == PatternForm::kLastAxis;
    const std::int64_t own = node.attrs.integer(name, last ? -1 : 0);
    if (last ? own == -1 || (shape && own == static_cast<std::int64_t>(shape->size()) - 1) : own == wanted) continue;
    return failed(found, value, fmt::format("{} = {} instead of {}", name, last ? "last" : std::to_string(wanted), own));
  }
  const std::size_t count = form.operands.size();
  for (std::size_t i = count; i < node.inputs.size(); ++i)
    if (node.input(i)) return failed(found, value, fmt::format("{} of {} operands", form.name, count));
  const bool commutes = count == 2 && (node.op == "Add" || node.op == "Mul");
  PatternMatch own = found;
  if (matchOperands(form, node, false, own)) return found = std::move(own), true;
  return commutes && matchOperands(form, node, true, found);
}

// Constants first: they end at once what is none.
bool PatternMatcher::matchOperands(const PatternForm& form, const Node& node, bool exchanged, PatternMatch& found) {
  for (const bool constants : {true, false})
    for (std::size_t i = 0; i < form.operands.size(); ++i) {
      const PatternForm& operand = form.operands[i];
      const bool constant = operand.kind == PatternForm::Kind::kFactor || operand.kind == PatternForm::Kind::kNumber;
      if (constant == constants && !matchForm(operand, node.input(exchanged ? 1 - i : i), found)) return false;
    }
  return true;
}

bool PatternMatcher::bind(const std::string& name, ValueId value, PatternMatch& found) {
  const auto [it, fresh] = found.values.try_emplace(name, value);
  return fresh || it->second == value || failed(found, value, fmt::format("'{}' again", graph_.value(it->second).name));
}

bool PatternMatcher::failed(const PatternMatch& found, ValueId at, std::string expected) {
  const auto rank = [](const PatternMatch& way) { return std::pair(way.marked.valid(), way.nodes.size()); };
  if (furthest_.expected.empty() || rank(found) > rank(furthest_.found)) {
    furthest_.found = found;
    furthest_.at = at;
    furthest_.expected.clear();
  }
  if (rank(found) == rank(furthest_.found) && at == furthest_.at) furthest_.expected.insert(std::move(expected));
  return false;
}

std::string PatternMatcher::labelOf(ValueId id) const {
  const Value& value = graph_.value(id);
  return value.producer ? graph_.node(value.producer).label() : fmt::format("'{}'", value.name);
}

std::optional<PatternMatcher::NearMiss> PatternMatcher::nearMiss() const {
  if (!furthest_.found.marked || furthest_.expected.empty()) return std::nullopt;
  std::string expected;
  std::size_t left = furthest_.expected.size();
  for (const std::string& one : furthest_.expected) expected += one + (--left == 0 ? "" : left == 1 ? " or " : ", ");
  const NodeId last = furthest_.found.nodes.back();
  const std::string label = graph_.node(last).label();
  if (graph_.value(furthest_.at).producer == last) return NearMiss{furthest_.found.marked, label + ": expected " + expected};
  return NearMiss{furthest_.found.marked,
                  fmt::format("before {}: found {}; expected {}", label, labelOf(furthest_.at), expected)};
}

}  // namespace stepscope

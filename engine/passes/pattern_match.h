// Finds what a pattern file says in a graph, and says where something that began like it ends.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/passes/infer.h"
#include "engine/passes/pattern_file.h"

namespace stepscope {

// What was found: names and their values, numbers, and the nodes, each once, from the result back.
struct PatternMatch {
  std::map<std::string, ValueId, std::less<>> values;
  std::map<std::string, double, std::less<>> numbers;
  std::vector<NodeId> nodes;
  NodeId marked;  // the last one that is marked

  // Invalid where the name got no value; 1 where no constant was multiplied into the number.
  ValueId value(std::string_view name) const;
  double number(std::string_view name) const;
};

class PatternMatcher {
 public:
  // All three have to outlive it.
  PatternMatcher(const Graph& graph, const Inference& inference, const PatternFile& patterns)
      : graph_(graph), inference_(inference), patterns_(patterns) {}

  // What makes `value`, as `rule` says. Where it fails, nearMiss() tells how far it came.
  // Gives up after 100,000 forms.
  std::optional<PatternMatch> match(std::string_view rule, ValueId value);

  struct NearMiss {
    NodeId node;            // the marked one that was reached
    std::string condition;  // "before Add 'mask': found Relu 'r'; expected Div, MatMul or Mul"
  };
  // Of the last match; nothing where no marked node was reached.
  std::optional<NearMiss> nearMiss() const;

 private:
  bool matchRule(std::string_view name, ValueId value, PatternMatch& found);
  bool matchForm(const PatternForm& form, ValueId value, PatternMatch& found);
  bool matchNode(const PatternForm& form, ValueId value, PatternMatch& found);
  bool matchOperands(const PatternForm& form, const Node& node, bool exchanged, PatternMatch& found);
  bool bind(const std::string& name, ValueId value, PatternMatch& found);
  bool failed(const PatternMatch& found, ValueId at, std::string expected);
  std::string labelOf(ValueId value) const;

  const Graph& graph_;
  const Inference& inference_;
  const PatternFile& patterns_;
  std::size_t forms_ = 0;  // that were tried; rules of a person may branch without end
  // The furthest that it came.
  struct {
    PatternMatch found;
    ValueId at;
    std::set<std::string> expected;
  } furthest_;
};

}  // namespace stepscope

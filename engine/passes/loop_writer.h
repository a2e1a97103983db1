// What the passes that write Loop, Scan and SequenceMap out share: the body of the node at hand is copied beside it, once
// per iteration, and what the copies give takes the place of what the node gave.
//
// A writer goes through the order of the graph, adds the nodes that it makes to `order_`, and sets that order at the end.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/passes/pass.h"

namespace stepscope {

class LoopWriter {
 protected:
  LoopWriter(Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  // What a Scan asks of its operands: one entry per sequence, then one per value that it collects.
  struct ScanForm {
    std::size_t states = 0;
    std::vector<std::int64_t> axes, directions, outAxes, outDirections;
  };

  struct LoopForm {
    const Graph* body = nullptr;
    std::size_t carried = 0;  // values handed from one iteration to the next
  };

  const Node& node() const { return graph_.node(loop_); }
  tl::unexpected<Error> malformed(std::string message) const;
  // The node stays for a reason.
  Status stay(std::string reason);

  // The body, which has at least as many inputs and outputs as asked for.
  Result<const Graph*> body(std::size_t formals, std::size_t results) const;
  // Of the Loop at hand: its body gives a condition, the carried values, and at least what the node hands out besides.
  Result<LoopForm> loopForm() const;
  // Of the Scan at hand, whose axes are those of the shapes of its sequences.
  Result<ScanForm> scanForm() const;
  // The iteration's number as the body wants it: a scalar, or a vector of one element.
  ValueId number(const Graph& inner, std::int64_t i);
  std::optional<bool> knownBool(ValueId id) const;
  // Whether the body hands on "true": the condition it gets, a constant, or one of the graph around it.
  bool conditionStays(const Graph& inner) const;
  bool isUsed(ValueId id);
  // How many copies of the body the graph has room for.
  std::int64_t roomFor(const Graph& inner) const;
  std::string tooManyText(const Graph& inner, std::int64_t count) const;
  // A number of iterations with which the graph has room for all its loops, to follow such a text.
  std::string roomHint() const;

  // A node beside the loop, under its predicates and `predicates_`.
  ValueId emit(const char* op, std::vector<ValueId> inputs, Attributes attributes = {}, std::string_view domain = {});
  // The nodes of the body with `arguments` in the place of its inputs; their results.
  Result<std::vector<ValueId>> copyBody(const Graph& inner, const std::vector<ValueId>& arguments, std::int64_t iteration);
  // Puts values in the place of what the node gave, under its names, and removes it.
  Status replace(const std::unordered_map<ValueId, ValueId>& replacements);

  Graph& graph_;
  PassContext& context_;
  NodeId loop_;
  std::vector<NodeId> order_;
  std::vector<Predicate> predicates_;          // of the iteration at hand, besides those of the loop
  std::unordered_map<ValueId, ValueId> base_;  // what the body at hand holds itself, copied once
};

}  // namespace stepscope

// Who calls whom among model-local functions, decided before anything is copied.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "engine/onnx/function.h"

namespace stepscope {

// The key by which a node names a function. Overloads share a name; a node of an overloaded function carries the overload in
// its attribute kOverloadAttribute, which the reader sets and the inliner removes.
using FunctionKey = std::tuple<std::string, std::string, std::string>;  // domain, name, overload
inline constexpr const char* kOverloadAttribute = "stepscope.overload";

// The function that is declared, and the one that a node calls.
FunctionKey keyOf(const Function& function);
FunctionKey keyOf(const Node& node);

struct FunctionPlan {
  std::map<FunctionKey, std::size_t> indices;
  std::vector<std::size_t> order;   // callees before callers
  std::vector<std::int64_t> nodes;  // per function: nodes after inlining its own calls, subgraphs included
  std::int64_t graphNodes = 0;      // of the graph after inlining
};

// Errors: kInvalidArgument for two functions of one key, or functions that call each other in a circle (named);
// kLimitExceeded for a call depth or node count above limits.h.
Result<FunctionPlan> planFunctions(const Graph& graph, const std::vector<Function>& functions);

}  // namespace stepscope

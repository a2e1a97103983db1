// What stands in the way of a step, as text: every node that cannot be computed or differentiated, at once and before
// anything is built. One line per node: its label, what is missing, module and source line as far as the exporter told, the
// way to the loss, and what would help. Empty text when nothing is in the way.
#pragma once

#include <string>
#include <vector>

#include "engine/autodiff/gradient_edges.h"
#include "engine/ops/operators.h"

namespace stepscope {

// Nodes before `roots` whose op this build does not know.
std::string unknownOperators(const Graph& graph, const std::vector<ValueId>& roots, const OpRegistry& ops);

// What checkGradientRules found.
std::string missingRules(const Graph& graph, const std::vector<MissingRule>& missing);

// Nodes that no backend runs.
std::string missingKernels(const Graph& graph, const Operators& operators);

// A cut edge, with the trained values behind it.
std::string lostGradient(const Graph& graph, const CutEdge& cut);

}  // namespace stepscope

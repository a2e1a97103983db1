// One imported graph put into another: how a loss or an optimizer that a user wrote as a model becomes part of the step.
//
// The part is imported as any model is: inlined, of the internal opset, with types. Its nodes follow those that are there,
// named
// "<prefix><name>". Its constants and initializers come along; an initializer keeps its name, for it is state that is saved.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/build/import.h"

namespace stepscope {

struct Splice {
  std::string prefix;                     // of the names of nodes and values: "loss/"
  std::string modulePath;                 // of nodes that have none
  Phase phase = Phase::kForward;          // of its nodes
  bool constant = false;                  // initializers come along as constants: nothing trains or saves them
  std::map<std::string, ValueId> joined;  // input of the part → value of the graph
  // An input that is joined to nothing: the value that it is to be, or why it cannot be.
  std::function<Result<ValueId>(const Value& input, ValueType type)> input;
  std::function<Origin(const std::string& name)> origin;  // of a node, from its name; nullptr: it belongs to the whole step
};

// Imports `path` as a part: without data, in the folder where it lies. `what` names it in errors: "loss graph".
Result<std::shared_ptr<const ImportedModel>> importPart(std::string_view what, const std::filesystem::path& path,
                                                        std::shared_ptr<const Registry> registry);

// The values of `graph` that are now the outputs of the part, by its names. Symbols of joined inputs' shapes become the
// extents that they meet. Errors: kInvalidArgument for a joined value of another type, rank or known extent; kUnsupported
// for a node that still holds a graph of its own; those of shape rules.
Result<std::map<std::string, ValueId>> splice(Graph& graph, Inference& inference, const ImportedModel& part,
                                              const Splice& request);

}  // namespace stepscope

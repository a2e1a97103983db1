// A model-local function as the file has it: a graph with formal inputs and outputs and attribute parameters.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/ir/graph.h"

namespace stepscope {

struct Function {
  std::string domain;
  std::string name;
  std::string overload;                 // IR 10: several functions of one name; "" usually
  std::vector<std::string> attributes;  // parameters without a default
  Attributes attributeDefaults;         // parameters with one
  // Formal parameters are values of role kInput, in order, in inputs(); formal results are outputs(). Nodes carry
  // attributeReferences where an attribute is a parameter of the function. opsets are the function's own imports.
  Graph body;
};

}  // namespace stepscope

// Which operator of PyTorch an ONNX node can come from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepscope::storage {

struct OperatorKind {
  std::string_view torch;              // "linear": of namespace aten, without the underscores of private and in-place forms
  int weight = -1;                     // argument that is a parameter, -1 = none
  std::vector<std::string_view> onnx;  // nodes that can stand for it: one of them does
};

// Null for an operator that is not told apart (views, fills, copies, arithmetic of scalars …).
const OperatorKind* operatorKind(std::string_view torchName);

// Names of operators that an ONNX node can come from; empty where none is known.
std::vector<std::string> torchNames(std::string_view onnx);

// The input of an ONNX node that is its weight, -1 = none.
int weightInput(std::string_view onnx);

}  // namespace stepscope::storage

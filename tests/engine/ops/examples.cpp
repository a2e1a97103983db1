#include "tests/engine/ops/examples.h"

#include <cmath>
#include <random>

namespace stepscope::testing {

std::vector<OpExample> allExamples() {
  std::vector<OpExample> all;
  for (const auto& list : {elementwiseExamples(), reductionExamples(), movementExamples(), linearExamples()})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

ExampleGraph makeGraph(const OpExample& example, DType floatType) {
  ExampleGraph made;
  std::mt19937_64 random(20240607);
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < example.inputs.size(); ++i) {
    const ExampleInput& input = example.inputs[i];
    if (input.absent) {
      operands.push_back({});
      made.contents.emplace_back();
      continue;
    }
    const bool floating = isFloating(input.dtype);
    const DType dtype = floating && input.dtype == DType::kF32 ? floatType : input.dtype;
    Tensor tensor;
    if (input.constant.valid()) {
      tensor = dtype == input.dtype ? input.constant : convertTensor(input.constant.view(), dtype);
    } else {
      tensor = Tensor(dtype, input.dims);
      std::uniform_real_distribution<double> real(input.low, input.high);
      std::uniform_int_distribution<std::int64_t> whole(static_cast<std::int64_t>(input.low),
                                                        static_cast<std::int64_t>(input.high));
      for (std::int64_t k = 0; k < tensor.elements(); ++k) {
        double value = floating ? real(random) : static_cast<double>(whole(random));
        for (const double kink : input.avoid)
          if (std::abs(value - kink) < 0.02) value = kink + (value >= kink ? 0.05 : -0.05);
        storeElement(tensor.view(), k, static_cast<float>(value));
      }
    }
    ValueId id;
    if (input.constant.valid()) {
      id = made.graph.addConstant("in" + std::to_string(i), tensor);
    } else {
      id = made.graph.addValue("in" + std::to_string(i), {ValueKind::kTensor, tensor.dtype(), shapeOf(tensor.dims())},
                               ValueRole::kInput);
      made.graph.mutableInputs().push_back(id);
    }
    operands.push_back(id);
    made.contents.push_back(tensor);
  }
  std::vector<std::string> outputs;
  for (std::size_t i = 0; i < example.outputs; ++i) outputs.push_back("out" + std::to_string(i));
  made.inputs = operands;
  made.node = made.graph.addNode("op", example.domain, example.op, operands, outputs, example.attrs);
  Node& node = made.graph.mutableNode(made.node);
  node.sinceVersion = kInternalOpset;
  node.provenance.imported = made.node;
  made.graph.mutableOutputs() = node.outputs;
  return made;
}

}  // namespace stepscope::testing

// A model written as protobuf text, and one training step of it on the CPU: its loss and the gradients of its initializers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/status.h"

namespace stepscope::testing {

struct SmallStep {
  double loss = 0;
  std::map<std::string, std::vector<double>> gradients;
  std::map<std::string, std::vector<double>> state;   // parameters and statistics after the step
  std::map<std::string, std::vector<double>> values;  // what SmallStepOptions::keep names
  std::vector<double> rows;                           // what each adds to the loss; empty where the step cannot tell
  std::vector<std::string> warnings;
  std::size_t instructions = 0, conditional = 0;  // of the plan; those under a predicate
  std::map<std::string, std::size_t> running;     // ops of instructions that run something, which views do not
};

struct SmallStepOptions {
  int lossType = 1;                             // onnx.TensorProto.DataType
  std::map<std::string, std::string> settings;  // TrainOptions
  std::vector<std::string> keep;
};

// `graph` is the text of an onnx.GraphProto with an output named "loss", or with its outputs and a setting "loss-fn".
// Errors: what opening, building or stepping answers.
Result<SmallStep> smallStep(const std::string& graph, int opset, const std::vector<std::string>& parameters,
                            const SmallStepOptions& options = {});

// A float initializer: floats("w", {2}, {1, 2}).
std::string floats(const std::string& name, const std::vector<std::int64_t>& dims, const std::vector<float>& values);
std::string doubles(const std::string& name, const std::vector<std::int64_t>& dims, const std::vector<double>& values);
// An int64 initializer; no dims: a scalar.
std::string ints(const std::string& name, const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& values);
// node { op_type … }; names are separated by blanks, "_" is an absent one; `more` is text inside the node.
std::string node(const std::string& op, const std::string& inputs, const std::string& outputs, const std::string& more = "");
std::string attribute(const std::string& name, std::int64_t value);
std::string realAttribute(const std::string& name, double value);
std::string textAttribute(const std::string& name, const char* value);
std::string attribute(const std::string& name, const std::vector<std::int64_t>& values);

}  // namespace stepscope::testing

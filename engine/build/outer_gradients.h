// A step whose loss somebody else computes: the gradients of some outputs are fed in the middle of it.
//
// The loss is a stand-in, sum of output · fed gradient, that says where gradients flow; none of its nodes runs, and the fed
// gradients are what the backward phase begins with. Inputs that it adds: "gradient_of.<output>", typed and shaped like the
// output. There is no optimizer: gradients are outputs of the step. So are the next contents of state that the forward phase
// changes, which their owner writes back when that phase ends, whether a backward phase follows or not.
#pragma once

#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/passes/infer.h"

namespace stepscope {

struct OuterRequest {
  std::vector<std::string> outputs;  // of the model, floats: whose gradients are fed
  // Floats of the model whose gradients are wanted: inputs, besides those of trained parameters, or parameters, which are
  // then the trained ones, whatever the options say.
  std::vector<std::string> inputs;
};

struct OuterStep {
  struct Seed {
    std::string output;
    std::size_t index = 0;  // of the output among those of the step
    ValueId gradient;       // the input
  };
  struct Gradient {
    std::string name;
    ValueId value;  // invalid: no fed output depends on it
  };
  struct Update {
    std::string state;
    ValueId next;
    // Of a running variance, which takes the variance of a sample, as PyTorch's do, not that of the population as ONNX has
    // it: the input of its normalisation, and the weight of the state. Else invalid. See sampleFactors().
    ValueId input;
    double momentum = 0;
  };
  std::vector<std::pair<std::string, ValueId>> outputs;  // all of the model, by their names there
  std::vector<Seed> seeds;
  std::vector<Gradient> gradients;  // of trained parameters, then of inputs
  std::vector<Update> updates;
};

// Adds the stand-in for outputs `seeds[i].index` of the graph; with inputs for their gradients where the seeds have none.
// Errors: an output that is no float.
Result<ValueId> addOuterLoss(Graph& graph, Inference& inference, std::vector<OuterStep::Seed>& seeds);

// Passes may have put other values in the place of the step's outputs, which keep their order: outputs of the model, next
// contents of its state, gradients.
void tellOuter(const Graph& graph, OuterStep& step);

// Once a batch has bound the inputs of the model: the fed gradients are shaped like their outputs. Error: that of a shape
// rule.
Status shapeSeeds(Graph& graph, const OuterStep& step, const Operators& operators);

// Updates of the graph's state become outputs, and are told in `updates`.
void updatesAsOutputs(Graph& graph, std::vector<OuterStep::Update>& updates);

// By update, once shapes are numbers: state = factor · next + (1 − factor) · momentum · state, where factor = n / (n − 1)
// with n elements for a channel; 1 for what is no running variance. Error: one element for a channel.
Result<std::vector<double>> sampleFactors(const Graph& graph, const OuterStep& step);

}  // namespace stepscope

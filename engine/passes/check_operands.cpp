#include "engine/passes/check_operands.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "engine/ops/op_def.h"

namespace stepscope {
namespace {

struct Form {
  Arity inputs, outputs;
  std::uint32_t absentInputs = 0;
};

struct OldForm {
  std::string_view op;
  int below;  // for nodes of an older opset than this
  Form form;
};

constexpr int kEveryOpset = 1 << 16;

// ONNX ops whose operands were others, or that have no OpDef because they are lowered; the oldest form of an op first.
// Source: onnx/docs/Changelog.md.
constexpr OldForm kOldForms[] = {
    {"Attention", 24, {{3, 6}, {1, 4}}},
    {"Attention", kEveryOpset, {{3, 7}, {1, 4}}},
    {"BlackmanWindow", kEveryOpset, {{1, 1}, {1, 1}}},
    {"Clip", 11, {{1, 1}, {1, 1}}},
    {"DFT", 20, {{1, 2}, {1, 1}}},
    {"DFT", kEveryOpset, {{1, 3}, {1, 1}}},
    {"Dropout", 12, {{1, 1}, {1, 2}}},
    {"Gemm", 11, {{3, 3}, {1, 1}}},
    {"HammingWindow", kEveryOpset, {{1, 1}, {1, 1}}},
    {"HannWindow", kEveryOpset, {{1, 1}, {1, 1}}},
    {"If", kEveryOpset, {{1, 1}, {1, kMany}}},
    {"Loop", kEveryOpset, {{2, kMany}, {1, kMany}, bit(0) | bit(1)}},
    {"MaxPool", 8, {{1, 1}, {1, 1}}},
    {"OptionalHasElement", 18, {{1, 1}, {1, 1}}},
    {"Pad", 11, {{1, 1}, {1, 1}}},
    {"Pad", 18, {{2, 3}, {1, 1}}},
    {"ReduceL1", 18, {{1, 1}, {1, 1}}},
    {"ReduceL2", 18, {{1, 1}, {1, 1}}},
    {"ReduceLogSum", 18, {{1, 1}, {1, 1}}},
    {"ReduceLogSumExp", 18, {{1, 1}, {1, 1}}},
    {"ReduceMax", 18, {{1, 1}, {1, 1}}},
    {"ReduceMean", 18, {{1, 1}, {1, 1}}},
    {"ReduceMin", 18, {{1, 1}, {1, 1}}},
    {"ReduceProd", 18, {{1, 1}, {1, 1}}},
    {"ReduceSum", 13, {{1, 1}, {1, 1}}},
    {"ReduceSumSquare", 18, {{1, 1}, {1, 1}}},
    {"Reshape", 5, {{1, 1}, {1, 1}}},
    {"Resize", 11, {{2, 2}, {1, 1}}},
    {"Resize", 13, {{3, 4}, {1, 1}, bit(1) | bit(2)}},
    {"RotaryEmbedding", kEveryOpset, {{3, 4}, {1, 1}}},
    {"STFT", kEveryOpset, {{2, 4}, {1, 1}}},
    {"Scan", 9, {{2, kMany}, {1, kMany}, bit(0)}},
    {"Scan", kEveryOpset, {{1, kMany}, {1, kMany}}},
    {"Scatter", kEveryOpset, {{3, 3}, {1, 1}}},
    {"Slice", 10, {{1, 1}, {1, 1}}},
    {"Split", 2, {{1, 2}, {1, kMany}}},
    {"Split", 13, {{1, 1}, {1, kMany}}},
    {"Squeeze", 13, {{1, 1}, {1, 1}}},
    {"SwiGLU", kEveryOpset, {{2, 2}, {1, 1}}},
    {"Swish", kEveryOpset, {{1, 1}, {1, 1}}},
    {"Tile", 6, {{3, 3}, {1, 1}}},
    {"TopK", 10, {{1, 1}, {2, 2}}},
    {"Unsqueeze", 13, {{1, 1}, {1, 1}}},
    {"Upsample", 9, {{1, 1}, {1, 1}}},
    {"Upsample", kEveryOpset, {{2, 2}, {1, 1}}},
};

std::optional<Form> formOf(const Node& node, int opset, const OpRegistry& ops) {
  const int version = node.sinceVersion > 0 ? node.sinceVersion : opset;
  if (node.domain.empty())
    for (const OldForm& old : kOldForms)
      if (old.op == node.op && version < old.below) return old.form;
  const OpDef* op = ops.find(node.domain, node.op);
  if (op == nullptr) return std::nullopt;
  return Form{op->inputs, op->outputs, op->absentInputs};
}

std::string countText(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string arityText(const Arity& arity) {
  if (arity.most == kMany) return fmt::format("at least {}", arity.least);
  if (arity.least == arity.most) return fmt::format("{}", arity.least);
  return fmt::format("{} to {}", arity.least, arity.most);
}

void checkNode(const Node& node, const Form& form, std::vector<OperandProblem>& problems) {
  const auto counted = [&](std::size_t count, const Arity& arity, const char* what) {
    if (count < arity.least || count > arity.most)
      problems.push_back({node.label(), fmt::format("{}; expected {}", countText(count, what), arityText(arity))});
  };
  counted(node.inputs.size(), form.inputs, "input");
  counted(node.outputs.size(), form.outputs, "output");
  for (std::size_t i = 0; i < node.inputs.size() && i < form.inputs.least; ++i)
    if (!node.inputs[i] && !maskHas(form.absentInputs, i))
      problems.push_back(
          {node.label(), fmt::format("input {} is absent; expected {}", i, countText(form.inputs.least, "input"))});
}

}  // namespace

void checkOperands(const Graph& graph, int opset, const std::function<bool(const Node&)>& isCall,
                   std::vector<OperandProblem>& problems, const OpRegistry& ops) {
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    for (const auto& [name, body] : node.subgraphs)
      if (body) checkOperands(*body, opset, isCall, problems, ops);
    if (isCall(node)) continue;
    if (const auto form = formOf(node, opset, ops)) checkNode(node, *form, problems);
  }
}

}  // namespace stepscope

// Models whose ranks come to different collectives while they run, though files, options and plans are the same: what only
// the collective itself can find.
#pragma once

#include <regex>

#include "tests/support/rank_model.h"

namespace stepscope::testing {

inline constexpr std::int64_t kDesynchronisedSteps = 4;

// loss = mean(If(mean(x) > 0, Broadcast(AllReduce(x w)), AllReduce(Broadcast(x w)))^2): the order of the two is that of each
// rank's x. In step 0 all ranks go one way; in step 1 rank 1 goes the other.
inline TestModel writeOtherOrder(const TemporaryFolder& folder) {
  onnx::ModelProto model;
  RankModelGraph g(model);
  addInput(g.graph(), "x", {kRankModelRows, kRankModelColumns});
  g.node("h", "MatMul", {"x", "w"});
  g.node("m", "ReduceMean", {"x"});
  g.number("keepdims", 0);
  addFloats(g.graph(), "zero", {});
  g.graph().mutable_initializer()->rbegin()->set_float_data(0, 0);
  g.node("y", "If", {g.node("c", "Greater", {"m", "zero"})});
  const auto choice = g.graph().mutable_node()->rbegin();
  for (const bool positive : {true, false}) {
    auto* attribute = choice->add_attribute();
    attribute->set_name(positive ? "then_branch" : "else_branch");
    attribute->set_type(onnx::AttributeProto::GRAPH);
    auto& branch = *attribute->mutable_g();
    const std::string side = positive ? "positive" : "negative";
    branch.set_name(side);
    std::string last = "h";
    for (const bool sum : {positive, !positive}) {
      auto* node = branch.add_node();
      node->set_op_type(sum ? "AllReduce" : "Broadcast");
      node->set_domain("stepscope");
      node->set_name(side + (sum ? "_sum" : "_spread"));
      node->add_input(last);
      node->add_output(node->name());
      last = node->name();
    }
    branch.add_output()->set_name(last);
  }
  addOutput(g.graph(), g.loss("", "h", {"y"}));
  Tensor x(DType::kF32, {2 * kDesynchronisedSteps, kRankModelRows, kRankModelColumns});
  constexpr std::int64_t kElements = kRankModelRows * kRankModelColumns;
  for (std::int64_t i = 0; i < x.elements(); ++i) storeElement(x.view(), i, i / kElements == 3 ? -0.5 : 0.5);
  const auto data = folder.path() / "order.safetensors";
  EXPECT_TRUE(writeSafetensors(data, {{"x", x.view()}}).has_value());
  return {"order", folder.write("order.onnx", model.SerializeAsString()), data, "l"};
}

// loss = mean(AllReduce(x w)^2) …, and data for ranks whose batches have `rows` rows.
inline TestModel writeOtherShape(const TemporaryFolder& folder, std::int64_t rows) {
  onnx::ModelProto model;
  RankModelGraph g(model);
  addInput(g.graph(), "x", {kRankModelRows, kRankModelColumns});
  auto* dim = g.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0);
  dim->set_dim_param("rows");
  addOutput(g.graph(), g.loss("", g.node("h", "MatMul", {"x", "w"}), {g.collective("together", "AllReduce", {"h"})}));
  Tensor x(DType::kF32, {2 * kDesynchronisedSteps, rows, kRankModelColumns});
  for (std::int64_t i = 0; i < x.elements(); ++i) storeElement(x.view(), i, 0.5);
  const auto data = folder.path() / fmt::format("shape{}.safetensors", rows);
  EXPECT_TRUE(writeSafetensors(data, {{"x", x.view()}}).has_value());
  return {"shape", folder.write("shape.onnx", model.SerializeAsString()), data, "l"};
}

// What is said of such ranks, without the numbers of their collectives.
inline std::string withoutNumbers(const std::string& text) {
  return std::regex_replace(text, std::regex("(AllReduce|Broadcast) [0-9]+ '"), "$1 '");
}
inline const std::string kAtOtherOrder =
    "ranks are at different collectives: rank 0 at AllReduce 'positive_sum' of step 1: float32 [2, 3] (24 bytes); rank 1 at "
    "Broadcast 'negative_spread' of step 1: float32 [2, 3] (24 bytes); expected the same on all";
inline const std::string kAtOtherShape =
    "ranks are at different collectives: rank 0 at AllReduce 'together' of step 0: float32 [2, 3] (24 bytes); rank 1 at "
    "AllReduce 'together' of step 0: float32 [3, 3] (36 bytes); expected the same on all";

}  // namespace stepscope::testing

// A small model with every collective that a file may have, and the same computation for one process: the two train alike.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "engine/data/safetensors.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/support/models.h"

namespace stepscope::testing {

inline constexpr std::int64_t kRankModelRows = 2, kRankModelColumns = 3;

// Nodes whose results are named after them.
class RankModelGraph {
 public:
  explicit RankModelGraph(onnx::ModelProto& model) : graph_(*model.mutable_graph()) {
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
    auto* own = model.add_opset_import();
    own->set_domain("stepscope");
    own->set_version(1);
    graph_.set_name("ranks");
    auto* w = addFloats(graph_, "w", {kRankModelColumns, kRankModelColumns});
    for (int i = 0; i < w->float_data_size(); ++i) w->set_float_data(i, 0.11F * static_cast<float>(i - 4));
  }

  std::string node(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                   const std::string& domain = "") {
    last_ = graph_.add_node();
    last_->set_op_type(op);
    last_->set_domain(domain);
    last_->set_name(name);
    for (const std::string& input : inputs) last_->add_input(input);
    last_->add_output(name);
    return name;
  }
  std::string collective(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                         const std::map<std::string, std::vector<std::int64_t>>& attributes = {}) {
    node(name, op, inputs, "stepscope");
    for (const auto& [key, numbers] : attributes) {
      if (key != "shape") {
        number(key, numbers.front());
        continue;
      }
      auto* attribute = last_->add_attribute();
      attribute->set_name(key);
      attribute->set_type(onnx::AttributeProto::INTS);
      for (const std::int64_t extent : numbers) attribute->add_ints(extent);
    }
    return name;
  }
  // An attribute of the newest node.
  void number(const std::string& name, std::int64_t value) {
    auto* attribute = last_->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(value);
  }
  // Of the first axis.
  void halves(const std::string& x, const std::string& first, const std::string& second) {
    last_ = graph_.add_node();
    last_->set_op_type("Split");
    last_->add_input(x);
    last_->add_output(first);
    last_->add_output(second);
  }
  onnx::GraphProto& graph() { return graph_; }

  // What one rank makes of its h and of what came to it.
  std::string loss(const std::string& of, const std::string& h, const std::vector<std::string>& came) {
    std::string sum = node("t0" + of, "Tanh", {h});
    for (std::size_t i = 0; i < came.size(); ++i) {
      const std::string mine = std::to_string(i) + of;
      const std::string power = node("p" + mine, "Mul", {came[i], node("g" + mine, "Sigmoid", {sum})});
      sum = node("s" + mine, "Add", {sum, power});
    }
    node("l" + of, "ReduceMean", {node("q" + of, "Mul", {sum, sum})});
    number("keepdims", 0);
    return "l" + of;
  }

 private:
  onnx::GraphProto& graph_;
  onnx::NodeProto* last_ = nullptr;
};

// For two ranks, each with its own input x. What is computed of a constant alone is sent too.
inline onnx::ModelProto rankModel() {
  onnx::ModelProto model;
  RankModelGraph g(model);
  addInput(g.graph(), "x", {kRankModelRows, kRankModelColumns});
  const std::string h = g.node("h", "MatMul", {"x", "w"});
  const std::map<std::string, std::vector<std::int64_t>> there{{"from", {0}}, {"to", {1}}, {"tag", {4}}},
      back{{"from", {1}}, {"to", {0}}, {"tag", {4}}};
  auto said = there, saidBack = back;
  said.insert({{"dtype", {1}}, {"shape", {kRankModelRows, -1}}});
  saidBack.insert({{"dtype", {1}}, {"shape", {-1, kRankModelColumns}}});
  g.collective("first", "Send", {g.node("hh", "Mul", {h, h})}, there);
  const std::string b = g.collective("b", "Broadcast", {h}, {{"root", {1}}});
  const std::string r = g.collective("r", "Reduce", {h}, {{"root", {0}}});
  const std::string a = g.collective("a", "AllToAll", {g.node("th", "Tanh", {h})});
  const std::string v = g.collective("v", "Recv", {}, said);
  g.collective("second", "Send", {g.node("vh", "Add", {v, h})}, back);
  const std::string u = g.collective("u", "Recv", {}, saidBack);
  const std::string m = g.collective("m", "AllReduce", {g.node("sh", "Sin", {h})}, {{"average", {1}}});
  const std::string all = g.collective("all", "AllGatherRows", {h});
  const std::string k = g.node("k", "ReduceMean", {h});
  const std::string rows =
      g.collective("rows", "ReduceScatterRows", {g.node("kall", "Mul", {g.node("sall", "Sin", {all}), k})});
  auto* extents = g.graph().add_initializer();
  extents->set_name("extents");
  extents->set_data_type(onnx::TensorProto::INT64);
  extents->add_dims(2);
  for (const std::int64_t extent : {kRankModelRows, kRankModelColumns}) extents->add_int64_data(extent);
  g.node("half", "ConstantOfShape", {"extents"});
  auto* half = g.graph().mutable_node()->rbegin()->add_attribute();
  half->set_name("value");
  half->set_type(onnx::AttributeProto::TENSOR);
  half->mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
  half->mutable_t()->add_dims(1);
  half->mutable_t()->add_float_data(0.5F);
  const std::string c = g.collective("constant", "Broadcast", {"half"}, {{"root", {0}}});
  addOutput(g.graph(), g.loss("", h, {b, r, a, v, u, m, rows, c}));
  return model;
}

// For one process, with the inputs x0 and x1 of both ranks. Its scalars are not to be trained.
inline constexpr const char* kRankModelFrozen = "^(half|zero)$";
inline onnx::ModelProto rankModelOfOne() {
  onnx::ModelProto model;
  RankModelGraph g(model);
  std::vector<std::string> h, th, sh, k;
  addFloats(g.graph(), "zero", {});
  g.graph().mutable_initializer()->rbegin()->set_float_data(0, 0);
  for (const std::string r : {"0", "1"}) {
    addInput(g.graph(), "x" + r, {kRankModelRows, kRankModelColumns});
    h.push_back(g.node("h" + r, "MatMul", {"x" + r, "w"}));
    th.push_back(g.node("th" + r, "Tanh", {h.back()}));
    sh.push_back(g.node("sh" + r, "Sin", {h.back()}));
    k.push_back(g.node("k" + r, "ReduceMean", {h.back()}));
    g.halves(th.back(), "top" + r, "rest" + r);
  }
  const auto none = [&](const std::string& name) { return g.node(name, "Mul", {h[0], "zero"}); };
  const std::string sum = g.node("sum", "Add", h), v = g.node("hh", "Mul", {h[0], h[0]}),
                    vh = g.node("vh", "Add", {v, h[1]});
  addFloats(g.graph(), "half", {});
  g.graph().mutable_initializer()->rbegin()->set_float_data(0, 0.5F);
  const std::string mean = g.node("mean", "Mul", {g.node("both", "Add", sh), "half"}),
                    c = g.node("c", "Add", {none("c_none"), "half"});
  g.node("all", "Concat", h);
  g.number("axis", 0);
  const std::string sall = g.node("sall", "Sin", {"all"});
  g.halves(g.node("kall", "Add", {g.node("kall0", "Mul", {sall, k[0]}), g.node("kall1", "Mul", {sall, k[1]})}), "rows0",
           "rows1");
  for (const std::string part : {"top", "rest"}) {
    g.node("turned_" + part, "Concat", {part + "0", part + "1"});
    g.number("axis", 0);
  }
  const std::string first = g.loss("_0", h[0], {h[1], sum, "turned_top", none("v0"), vh, mean, "rows0", c});
  const std::string second = g.loss("_1", h[1], {h[1], none("r1"), "turned_rest", v, none("u1"), mean, "rows1", c});
  addOutput(g.graph(), g.node("loss", "Mul", {g.node("losses", "Add", {first, second}), "half"}));
  return model;
}

// Writes both models and `steps` batches for each into `folder`.
struct RankModels {
  TestModel ranks, one;
};
inline RankModels writeRankModels(const TemporaryFolder& folder, std::int64_t steps) {
  constexpr std::int64_t kElements = kRankModelRows * kRankModelColumns;
  Tensor all(DType::kF32, {2 * steps, kRankModelRows, kRankModelColumns});
  std::vector<Tensor> parts;
  for (int r = 0; r < 2; ++r) parts.emplace_back(DType::kF32, Dims{steps, kRankModelRows, kRankModelColumns});
  for (std::int64_t i = 0; i < all.elements(); ++i) {
    const std::int64_t entry = i / kElements;
    const double value = static_cast<double>(i * 37 % 101) / 50 - 1;
    storeElement(all.view(), i, value);
    storeElement(parts[static_cast<std::size_t>(entry % 2)].view(), entry / 2 * kElements + i % kElements, value);
  }
  const auto data = folder.path() / "ranks.safetensors", one = folder.path() / "one.safetensors";
  EXPECT_TRUE(writeSafetensors(data, {{"x", all.view()}}).has_value());
  EXPECT_TRUE(writeSafetensors(one, {{"x0", parts[0].view()}, {"x1", parts[1].view()}}).has_value());
  return {{"ranks", folder.write("ranks.onnx", rankModel().SerializeAsString()), data, "l"},
          {"one", folder.write("one.onnx", rankModelOfOne().SerializeAsString()), one, "loss"}};
}

}  // namespace stepscope::testing

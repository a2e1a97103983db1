#include "engine/onnx/inliner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/onnx/function_calls.h"
#include "engine/onnx/unknown_fields.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/support/yardstick.h"

namespace stepscope::testing {
namespace {

onnx::AttributeProto* reference(onnx::NodeProto& node, const char* name, const char* parameter) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::FLOAT);
  attribute->set_ref_attr_name(parameter);
  return attribute;
}

void setFloat(onnx::NodeProto& node, const char* name, float value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::FLOAT);
  attribute->set_f(value);
}

LoadedModel inlined(const onnx::ModelProto& proto, InlineReport* report = nullptr) {
  auto model = parse(proto);
  SS_CHECK(model.has_value());
  const auto result = inlineFunctions(model->graph, model->functions);
  SS_CHECK(result.has_value());
  if (report) *report = *result;
  for (const NodeId id : model->graph.order()) EXPECT_NE(model->graph.node(id).domain, "local");
  EXPECT_TRUE(model->graph.verify().empty());
  return std::move(*model);
}

TEST(Inliner, ReplacesNestedCallsAndKeepsTheOutputsName) {
  InlineReport report;
  const auto model = inlined(nestedFunctions(3), &report);
  ASSERT_EQ(model.graph.order().size(), 1u);
  const Node& relu = model.graph.node(model.graph.order()[0]);
  EXPECT_EQ(relu.op, "Relu");
  EXPECT_EQ(model.graph.value(relu.output(0)).name, "z");
  EXPECT_EQ(report.calls, 3u);
  EXPECT_EQ(report.depth, 3);
}

// 1,634 bytes that would become a million nodes. They are counted before any is made.
TEST(Inliner, RefusesFanOutBeforeItBuilds) {
  const auto refused = parse(nestedFunctions(21, 2));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kLimitExceeded);
  EXPECT_NE(refused.error().message.find("1048576 nodes after inlining"), std::string::npos) << refused.error().message;
  EXPECT_EQ(parse(nestedFunctions(90, 5)).error().code, ErrorCode::kLimitExceeded);
  const auto many = parse(nestedFunctions(18, 2)).value();
  const auto plan = planFunctions(many.graph, many.functions);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->graphNodes, 1 << 17);
}

TEST(Inliner, SourcesLeadBackThroughEveryCall) {
  const auto model = inlined(nestedFunctions(3));
  const Graph& graph = model.graph;
  NodeId at = graph.order()[0];
  EXPECT_EQ(graph.node(at).provenance.imported, at);
  std::vector<std::string> ops;
  while (!graph.node(at).provenance.sources.empty()) {
    at = graph.node(at).provenance.sources[0];
    ops.push_back(graph.node(at).op);
    EXPECT_FALSE(graph.alive(at));
  }
  EXPECT_EQ(ops, (std::vector<std::string>{"F2", "F1", "F0"}));
}

TEST(Inliner, GraphWithoutCallsKeepsItsVersion) {
  auto model = parse(smallModel());
  const auto version = model->graph.version();
  ASSERT_TRUE(inlineFunctions(model->graph, model->functions).has_value());
  EXPECT_EQ(model->graph.version(), version);
}

TEST(Inliner, AttributeReferencesTakeCallThenDefaultThenNothing) {
  auto proto = nestedFunctions(1);
  auto& function = *proto.mutable_functions(0);
  function.clear_node();
  reference(*addNode(function, "LeakyRelu", {"a"}, {"t"}), "alpha", "given");
  reference(*addNode(function, "LeakyRelu", {"t"}, {"u"}), "alpha", "defaulted");
  reference(*addNode(function, "LeakyRelu", {"u"}, {"b"}), "alpha", "absent");
  for (const char* name : {"given", "absent"}) function.add_attribute(name);
  onnx::AttributeProto fallback;
  fallback.set_name("defaulted");
  fallback.set_type(onnx::AttributeProto::FLOAT);
  fallback.set_f(0.25f);
  function.GetReflection()->MutableUnknownFields(&function)->AddLengthDelimited(kFunctionAttributeField,
                                                                                fallback.SerializeAsString());
  setFloat(*proto.mutable_graph()->mutable_node(0), "given", 0.5f);
  const auto model = inlined(proto);
  const auto& order = model.graph.order();
  ASSERT_EQ(order.size(), 3u);
  EXPECT_EQ(model.graph.node(order[0]).attrs.real("alpha", -1), 0.5f);
  EXPECT_EQ(model.graph.node(order[1]).attrs.real("alpha", -1), 0.25f);
  EXPECT_FALSE(model.graph.node(order[2]).attrs.has("alpha"));
}

TEST(Inliner, ReferencesPassThroughInnerCalls) {
  auto proto = nestedFunctions(2);
  auto& inner = *proto.mutable_functions(1);
  inner.clear_node();
  reference(*addNode(inner, "Constant", {}, {"b"}), "value_float", "k");
  inner.add_attribute("k");
  reference(*proto.mutable_functions(0)->mutable_node(0), "k", "outer");
  proto.mutable_functions(0)->add_attribute("outer");
  setFloat(*proto.mutable_graph()->mutable_node(0), "outer", 3);
  const auto model = inlined(proto);
  const Tensor* value = model.graph.node(model.graph.order()[0]).attrs.tensor("value");
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(value->as<float>()[0], 3.0f);
}

TEST(Inliner, BranchesOfABodySeeTheValuesOfTheCall) {
  auto proto = nestedFunctions(1);
  auto& function = *proto.mutable_functions(0);
  function.clear_node();
  addNode(function, "Neg", {"a"}, {"n"});
  auto* node = addNode(function, "If", {"a"}, {"b"});
  for (const char* name : {"then_branch", "else_branch"}) {
    auto& graph = *addGraphAttribute(*node, name)->mutable_g();
    addNode(graph, "Add", {"a", "n"}, {"t"}, "add");
    addOutput(graph, "t");
  }
  const auto model = inlined(proto);
  const Graph& graph = model.graph;
  const Graph& branch = *graph.node(graph.order()[1]).subgraphs.at("then_branch");
  ASSERT_EQ(branch.inputs().size(), 2u);
  for (const ValueId input : branch.inputs())
    EXPECT_TRUE(graph.findValue(branch.value(input).name).valid()) << branch.value(input).name;
  EXPECT_EQ(branch.value(branch.inputs()[0]).name, "x");
}

TEST(Inliner, CallsInsideBranchesAreReplacedThere) {
  auto proto = branchingModel();
  auto* import = proto.add_opset_import();
  import->set_domain("local");
  import->set_version(1);
  addNode(*addFunction(proto, "F", {"a"}, {"b"}), "Neg", {"a"}, {"b"});
  auto& branch = *proto.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g();
  branch.mutable_node(0)->set_op_type("F");
  branch.mutable_node(0)->set_domain("local");
  const auto model = inlined(proto);
  const Graph& after = *model.graph.node(model.graph.order()[0]).subgraphs.at("then_branch");
  ASSERT_EQ(after.order().size(), 1u);
  EXPECT_EQ(after.node(after.order()[0]).op, "Neg");
  EXPECT_TRUE(after.verify().empty());
}

TEST(Inliner, OutputThatIsAnInputIsCopied) {
  auto proto = nestedFunctions(1);
  auto& function = *proto.mutable_functions(0);
  function.clear_node();
  function.set_output(0, "a");
  const auto model = inlined(proto);
  ASSERT_EQ(model.graph.order().size(), 1u);
  EXPECT_EQ(model.graph.node(model.graph.order()[0]).op, "Identity");
}

TEST(Inliner, OverloadsAreToldApart) {
  auto proto = nestedFunctions(1);
  auto* second = proto.add_functions();
  *second = proto.functions(0);
  second->mutable_node(0)->set_op_type("Neg");
  const auto overload = [](google::protobuf::Message& message, int field) {
    message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(field, "second");
  };
  overload(*second, kFunctionOverloadField);
  overload(*proto.mutable_graph()->mutable_node(0), kNodeOverloadField);
  const auto model = inlined(proto);
  EXPECT_EQ(model.graph.node(model.graph.order()[0]).op, "Neg");
}

TEST(Inliner, NodesCarryTheOpsetOfTheirFunction) {
  auto proto = nestedFunctions(1);
  proto.mutable_functions(0)->mutable_opset_import(0)->set_version(13);
  const auto model = inlined(proto);
  EXPECT_EQ(model.graph.node(model.graph.order()[0]).sinceVersion, 13);
}

TEST(Inliner, CallWithTooManyInputsIsRefused) {
  auto proto = nestedFunctions(1);
  proto.mutable_graph()->mutable_node(0)->add_input("x");
  auto model = parse(proto);
  EXPECT_EQ(inlineFunctions(model->graph, model->functions).error().code, ErrorCode::kInvalidArgument);
}

// 500 functions in a chain of blocks of 50 levels: the time must follow the number of nodes.
TEST(OrtQuirks, Q28_FiveHundredFunctionsAreInlinedInLinearTime) {
  const auto build = [](int blocks) {
    auto proto = nestedFunctions(1);
    proto.clear_functions();
    auto& graph = *proto.mutable_graph();
    graph.clear_node();
    for (int block = 0; block < blocks; ++block) {
      const std::string prefix = "B" + std::to_string(block) + "_";
      addNode(graph, prefix + "0", {block == 0 ? "x" : "v" + std::to_string(block)},
              {block + 1 == blocks ? "z" : "v" + std::to_string(block + 1)})
          ->set_domain("local");
      for (int level = 0; level < 50; ++level) {
        auto* function = addFunction(proto, prefix + std::to_string(level), {"a"}, {"b"});
        addNode(*function, "Neg", {"a"}, {"t"});
        if (level + 1 < 50)
          addNode(*function, prefix + std::to_string(level + 1), {"t"}, {"b"}, "local");
        else
          addNode(*function, "Relu", {"t"}, {"b"});
      }
    }
    return proto;
  };
  // CPU time of this process alone, and a yardstick: ten times the functions may cost ten times the work (a quadratic
  // inliner would cost a hundred times), whatever the machine. The smallest of some tries is the least disturbed one.
  const auto cost = [&](const auto& proto, std::size_t nodes) {
    double best = 1e9;
    for (int i = 0; i < 5; ++i) {
      const double start = cpuSeconds();
      EXPECT_EQ(inlined(proto).graph.order().size(), nodes);
      best = std::min(best, cpuSeconds() - start);
    }
    return best;
  };
  const auto small = build(10), large = build(100);
  ASSERT_EQ(small.functions_size(), 500);
  const double unit = cost(small, 510);
  EXPECT_LE(cost(large, 5100), 40 * unit + 0.01) << "500 functions take " << unit << " s";
}

}  // namespace
}  // namespace stepscope::testing

#include "tests/engine/onnx/broken_models.h"

namespace stepscope::testing {
namespace {

using Change = std::function<void(onnx::ModelProto&)>;
using Make = onnx::ModelProto (*)();

std::function<std::string()> changed(Make make, Change change) {
  return [make, change] {
    auto model = make();
    change(model);
    return model.SerializeAsString();
  };
}

onnx::AttributeProto* addAttribute(onnx::ModelProto& m, const char* name, onnx::AttributeProto::AttributeType type) {
  auto* attribute = m.mutable_graph()->mutable_node(1)->add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return attribute;
}

onnx::GraphProto& branch(onnx::ModelProto& m, int index) {
  return *m.mutable_graph()->mutable_node(0)->mutable_attribute(index)->mutable_g();
}

onnx::ModelProto callingModel() { return nestedFunctions(2); }

void addBrokenAttributes(std::vector<BrokenModel>& models) {
  using onnx::AttributeProto;
  const auto wrong = [&](const char* name, const char* text, Change change) {
    models.push_back({name, ErrorCode::kInvalidArgument, text, changed(smallModel, std::move(change))});
  };
  const auto unsupportedModel = [&](const char* name, const char* text, Change change) {
    models.push_back({name, ErrorCode::kUnsupported, text, changed(smallModel, std::move(change))});
  };
  wrong("AttributeWithoutName", "attribute without a name",
        [](auto& m) { addAttribute(m, "", AttributeProto::INT)->set_i(1); });
  wrong("AttributeTwice", "attribute 'axis' given twice", [](auto& m) {
    addAttribute(m, "axis", AttributeProto::INT)->set_i(1);
    addAttribute(m, "axis", AttributeProto::INT)->set_i(2);
  });
  wrong("AttributeWithoutType", "attribute 'axis' has no clear type",
        [](auto& m) { addAttribute(m, "axis", AttributeProto::UNDEFINED); });
  wrong("AttributeOfSeveralTypes", "attribute 'axis' has no clear type", [](auto& m) {
    auto* attribute = addAttribute(m, "axis", AttributeProto::UNDEFINED);
    attribute->set_i(1);
    attribute->set_f(1);
  });
  wrong("IntAttributeThatHoldsFloats", "attribute 'axis' of type int holds floats",
        [](auto& m) { addAttribute(m, "axis", AttributeProto::INT)->add_floats(1); });
  wrong("FloatAttributeThatHoldsAGraph", "of type float holds graph",
        [](auto& m) { addAttribute(m, "alpha", AttributeProto::FLOAT)->mutable_g(); });
  wrong("StringAttributeThatHoldsATensor", "of type string holds tensor",
        [](auto& m) { addAttribute(m, "mode", AttributeProto::STRING)->mutable_t(); });
  wrong("ReferenceOutsideAFunction", "refers to a function's attribute outside a function",
        [](auto& m) { addAttribute(m, "alpha", AttributeProto::FLOAT)->set_ref_attr_name("a"); });
  wrong("EmptyTensorAttribute", "of type tensor is empty",
        [](auto& m) { addAttribute(m, "value", AttributeProto::TENSOR); });
  wrong("EmptyGraphAttribute", "of type graph is empty", [](auto& m) { addAttribute(m, "body", AttributeProto::GRAPH); });
  wrong("TensorAttributeOfWrongSize", "3 bytes of raw_data; expected 4", [](auto& m) {
    auto& tensor = *addAttribute(m, "value", AttributeProto::TENSOR)->mutable_t();
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.set_raw_data("abc");
  });
  unsupportedModel("SparseTensorAttribute", "of type sparse_tensor",
                   [](auto& m) { addAttribute(m, "sparse_value", AttributeProto::SPARSE_TENSOR)->mutable_sparse_tensor(); });
  unsupportedModel("TypeAttribute", "of type type_proto",
                   [](auto& m) { addAttribute(m, "type", AttributeProto::TYPE_PROTO)->mutable_tp(); });
  unsupportedModel("ListOfGraphsAttribute", "of type graphs",
                   [](auto& m) { addAttribute(m, "graphs", AttributeProto::GRAPHS)->add_graphs(); });
  wrong("ConstantWithoutValue", "no value or several", [](auto& m) { addNode(*m.mutable_graph(), "Constant", {}, {"c"}); });
  wrong("ConstantWithTwoValues", "no value or several", [](auto& m) {
    addNode(*m.mutable_graph(), "Constant", {}, {"c"});
    for (const char* name : {"value_int", "value_float"}) {
      auto* attribute = m.mutable_graph()->mutable_node(2)->add_attribute();
      attribute->set_name(name);
      attribute->set_type(name == std::string("value_int") ? AttributeProto::INT : AttributeProto::FLOAT);
    }
  });
  wrong("LoopWithoutBody", "no attribute 'body'", [](auto& m) { addNode(*m.mutable_graph(), "Loop", {"x"}, {"l"}); });
}

void addBrokenSubgraphs(std::vector<BrokenModel>& models) {
  const auto wrong = [&](const char* name, const char* text, Change change) {
    models.push_back({name, ErrorCode::kInvalidArgument, text, changed(branchingModel, std::move(change))});
  };
  wrong("IfWithoutElse", "no attribute 'else_branch'",
        [](auto& m) { m.mutable_graph()->mutable_node(0)->mutable_attribute()->RemoveLast(); });
  wrong("IfWithoutBranches", "no attribute 'then_branch'",
        [](auto& m) { m.mutable_graph()->mutable_node(0)->clear_attribute(); });
  wrong("BranchWithFormalInput", "1 formal inputs; a branch of If has none",
        [](auto& m) { addInput(branch(m, 0), "f", {1}); });
  wrong("BranchWithTooManyOutputs", "then_branch has 2 outputs; expected the 1",
        [](auto& m) { addOutput(branch(m, 0), "x"); });
  wrong("BranchWithoutOutputs", "else_branch has 0 outputs", [](auto& m) { branch(m, 1).clear_output(); });
  wrong("BranchWithDanglingInput", "If 'if' attribute 'then_branch': Relu 'relu': input 'nowhere'",
        [](auto& m) { branch(m, 0).mutable_node(0)->set_input(0, "nowhere"); });
  wrong("BranchThatReadsTheOther", "input 'b' is made by no node",
        [](auto& m) { branch(m, 0).mutable_node(0)->set_input(0, "b"); });
  wrong("BranchWithCycle", "cycle", [](auto& m) { branch(m, 0).mutable_node(0)->set_input(0, "a"); });
  wrong("BranchThatReadsItsOwnIf", "cycle: If 'if'", [](auto& m) { branch(m, 0).mutable_node(0)->set_input(0, "z"); });
  wrong("BranchWithValueTwice", "defined twice", [](auto& m) { addNode(branch(m, 0), "Relu", {"x"}, {"a"}); });
  wrong("BranchWithBrokenTensor", "attribute 'else_branch': initializer 'k': 0 elements",
        [](auto& m) { addFloats(branch(m, 1), "k", {2})->clear_float_data(); });
}

void addBrokenFunctions(std::vector<BrokenModel>& models) {
  const auto wrong = [&](const char* name, const char* text, Change change) {
    models.push_back({name, ErrorCode::kInvalidArgument, text, changed(callingModel, std::move(change))});
  };
  wrong("FunctionThatCallsItself", "recursion", [](auto& m) { m.mutable_functions(0)->mutable_node(0)->set_op_type("F0"); });
  wrong("FunctionsThatCallEachOther", "function 'F0', 'F1': recursion", [](auto& m) {
    m.mutable_functions(1)->mutable_node(0)->set_op_type("F0");
    m.mutable_functions(1)->mutable_node(0)->set_domain("local");
  });
  wrong("FunctionThatCallsItselfInABranch", "recursion", [](auto& m) {
    auto& function = *m.mutable_functions(1);
    function.clear_node();
    auto* node = addNode(function, "If", {"a"}, {"b"});
    for (const char* name : {"then_branch", "else_branch"}) {
      auto& graph = *addGraphAttribute(*node, name)->mutable_g();
      addNode(graph, "F1", {"a"}, {"t"})->set_domain("local");
      addOutput(graph, "t");
    }
  });
  wrong("FunctionTwice", "function 'F1': defined twice", [](auto& m) { *m.add_functions() = m.functions(1); });
  wrong("FunctionWithoutName", "a function without a name", [](auto& m) { m.mutable_functions(1)->clear_name(); });
  wrong("FunctionWithDanglingInput", "input 'nowhere'",
        [](auto& m) { m.mutable_functions(1)->mutable_node(0)->set_input(0, "nowhere"); });
  wrong("FunctionThatReadsTheModel", "input 'x' is made by no node",
        [](auto& m) { m.mutable_functions(1)->mutable_node(0)->set_input(0, "x"); });
  wrong("FunctionWithDanglingOutput", "output 'c'", [](auto& m) { m.mutable_functions(1)->add_output("c"); });
  wrong("FunctionWithInputTwice", "defined twice", [](auto& m) { m.mutable_functions(1)->add_input("a"); });
  wrong("FunctionWithCycle", "cycle", [](auto& m) { m.mutable_functions(1)->mutable_node(0)->set_input(0, "b"); });
  models.push_back({"FunctionOfOpsetForty", ErrorCode::kUnsupported, "opset 40", changed(callingModel, [](auto& m) {
                      m.mutable_functions(1)->mutable_opset_import(0)->set_version(40);
                    })});
  models.push_back({"CallsHundredAndOneDeep", ErrorCode::kLimitExceeded, "calls nested 101 deep",
                    [] { return nestedFunctions(101).SerializeAsString(); }});
  models.push_back({"CallFanOutBomb", ErrorCode::kLimitExceeded, "nodes after inlining",
                    [] { return nestedFunctions(30, 10).SerializeAsString(); }});
}

}  // namespace

void addBrokenBodies(std::vector<BrokenModel>& models) {
  addBrokenAttributes(models);
  addBrokenSubgraphs(models);
  addBrokenFunctions(models);
}

std::vector<BrokenModel> brokenModels() {
  std::vector<BrokenModel> models;
  addBrokenBytes(models);
  addBrokenGraphs(models);
  addBrokenTensors(models);
  addBrokenBodies(models);
  return models;
}

}  // namespace stepscope::testing

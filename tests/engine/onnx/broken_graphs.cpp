#include "tests/engine/onnx/broken_models.h"

namespace stepscope::testing {
namespace {

using Change = std::function<void(onnx::ModelProto&)>;

std::function<std::string()> small(Change change) {
  return [change] {
    auto model = smallModel();
    change(model);
    return model.SerializeAsString();
  };
}

onnx::TypeProto_Tensor* inputType(onnx::ModelProto& m) {
  return m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
}

}  // namespace

void addBrokenGraphs(std::vector<BrokenModel>& models) {
  const auto wrong = [&](const char* name, const char* text, Change change) {
    models.push_back({name, ErrorCode::kInvalidArgument, text, small(std::move(change))});
  };
  const auto unsupportedModel = [&](const char* name, const char* text, Change change) {
    models.push_back({name, ErrorCode::kUnsupported, text, small(std::move(change))});
  };
  const auto exceeds = [&](const char* name, const char* text, Change change) {
    models.push_back({name, ErrorCode::kLimitExceeded, text, small(std::move(change))});
  };
  unsupportedModel("NoIrVersion", "IR version 0", [](auto& m) { m.clear_ir_version(); });
  unsupportedModel("IrVersionTwo", "IR version 2", [](auto& m) { m.set_ir_version(2); });
  unsupportedModel("IrVersionOfTheFuture", "IR version 99", [](auto& m) { m.set_ir_version(99); });
  unsupportedModel("NegativeIrVersion", "IR version -1", [](auto& m) { m.set_ir_version(-1); });
  unsupportedModel("OpsetZero", "opset 0", [](auto& m) { m.mutable_opset_import(0)->set_version(0); });
  unsupportedModel("OpsetTwentyNine", "opset 29", [](auto& m) { m.mutable_opset_import(0)->set_version(29); });
  unsupportedModel("OpsetOfSixtyThreeBits", "opset 9223372036854775807",
                   [](auto& m) { m.mutable_opset_import(0)->set_version(INT64_MAX); });
  wrong("NoOpset", "domain '' is not imported", [](auto& m) { m.clear_opset_import(); });
  wrong("TwoVersionsOfOneDomain", "versions 17 and 18", [](auto& m) { m.add_opset_import()->set_version(18); });
  wrong("NegativeVersionOfADomain", "version -3 of domain 'custom'", [](auto& m) {
    m.add_opset_import()->set_domain("custom");
    m.mutable_opset_import(1)->set_version(-3);
  });
  wrong("DomainNotImported", "domain 'custom' is not imported",
        [](auto& m) { m.mutable_graph()->mutable_node(0)->set_domain("custom"); });

  wrong("InitializerTwice", "value 'w' is defined twice", [](auto& m) { addFloats(*m.mutable_graph(), "w", {1}); });
  wrong("InputTwice", "listed twice", [](auto& m) { addInput(*m.mutable_graph(), "x", {1}); });
  wrong("OutputNamedLikeAnInput", "value 'x' is defined twice, first as graph input",
        [](auto& m) { addNode(*m.mutable_graph(), "Relu", {"z"}, {"x"}); });
  wrong("OutputNamedLikeAnInitializer", "value 'w' is defined twice, first as graph initializer",
        [](auto& m) { addNode(*m.mutable_graph(), "Relu", {"z"}, {"w"}); });
  wrong("TwoNodesMakeOneValue", "first as output of MatMul 'matmul'",
        [](auto& m) { addNode(*m.mutable_graph(), "Relu", {"x"}, {"y"}); });
  wrong("NodeMakesOneValueTwice", "defined twice", [](auto& m) { addNode(*m.mutable_graph(), "Split", {"x"}, {"p", "p"}); });
  wrong("DanglingInput", "input 'nowhere' is made by no node",
        [](auto& m) { m.mutable_graph()->mutable_node(0)->set_input(0, "nowhere"); });
  wrong("DanglingOutput", "output 'nowhere' is made by no node", [](auto& m) { addOutput(*m.mutable_graph(), "nowhere"); });
  wrong("OutputWithoutName", "an output without a name", [](auto& m) { addOutput(*m.mutable_graph(), ""); });
  wrong("InputWithoutName", "an input without a name", [](auto& m) { addInput(*m.mutable_graph(), "", {1}); });
  wrong("InitializerWithoutName", "an initializer without a name", [](auto& m) { addFloats(*m.mutable_graph(), "", {1}); });
  wrong("NameWithNulDoesNotMatch", "'x\\x00'",
        [](auto& m) { m.mutable_graph()->mutable_node(0)->set_input(0, std::string("x\0", 2)); });
  wrong("NodeWithoutOperator", "no operator", [](auto& m) { m.mutable_graph()->mutable_node(1)->clear_op_type(); });
  wrong("CycleOfTwo", "cycle: MatMul 'matmul' ← Relu 'relu'",
        [](auto& m) { m.mutable_graph()->mutable_node(0)->set_input(0, "z"); });
  wrong("NodeThatFeedsItself", "cycle: Relu 'relu'", [](auto& m) { m.mutable_graph()->mutable_node(1)->set_input(0, "z"); });
  wrong("CycleOfHundred", "and 94 more", [](auto& m) {
    for (int i = 0; i < 100; ++i)
      addNode(*m.mutable_graph(), "Relu", {"c" + std::to_string(i)}, {"c" + std::to_string((i + 1) % 100)},
              "c" + std::to_string(i));
  });
  wrong("CycleOfHundredThousand", "cycle", [](auto& m) {
    for (int i = 0; i < 100'000; ++i)
      addNode(*m.mutable_graph(), "Relu", {"c" + std::to_string(i)}, {"c" + std::to_string((i + 1) % 100'000)});
  });

  wrong("InputWithoutType", "no type", [](auto& m) { m.mutable_graph()->mutable_input(0)->clear_type(); });
  wrong("NegativeExtentOfAnInput", "extent -2 of axis 0",
        [](auto& m) { inputType(m)->mutable_shape()->mutable_dim(0)->set_dim_value(-2); });
  exceeds("AstronomicExtentOfAnInput", "extent 9223372036854775807",
          [](auto& m) { inputType(m)->mutable_shape()->mutable_dim(0)->set_dim_value(INT64_MAX); });
  exceeds("InputOfNineAxes", "rank 9", [](auto& m) {
    for (int i = 0; i < 7; ++i) inputType(m)->mutable_shape()->add_dim()->set_dim_value(1);
  });
  unsupportedModel("InputOfUnknownElementType", "element type 99;", [](auto& m) { inputType(m)->set_elem_type(99); });
  unsupportedModel("InputOfNoElementType", "element type 0", [](auto& m) { inputType(m)->set_elem_type(0); });
  unsupportedModel("InputThatIsAMap", "type other than tensor", [](auto& m) {
    m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_map_type()->set_key_type(7);
  });
  wrong("DeclaredTypeContradictsInitializer", "float32[3, 3] but declared as float32[4]",
        [](auto& m) { addInput(*m.mutable_graph(), "w", {4}); });
  wrong("NegativeExtentInValueInfo", "extent -3", [](auto& m) {
    auto* info = m.mutable_graph()->add_value_info();
    info->set_name("y");
    info->mutable_type()->mutable_tensor_type()->set_elem_type(1);
    info->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(-3);
  });
  unsupportedModel("SparseInitializer", "sparse initializers", [](auto& m) { m.mutable_graph()->add_sparse_initializer(); });
}

}  // namespace stepscope::testing

#include "tests/engine/onnx/model_builder.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace stepscope::testing {
namespace {

void setType(onnx::ValueInfoProto& info, std::initializer_list<std::int64_t> dims) {
  auto* type = info.mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  auto* shape = type->mutable_shape();
  for (const std::int64_t extent : dims) shape->add_dim()->set_dim_value(extent);
}

void fill(onnx::NodeProto& node, const std::string& op, std::initializer_list<std::string> inputs,
          std::initializer_list<std::string> outputs) {
  node.set_op_type(op);
  for (const auto& name : inputs) node.add_input(name);
  for (const auto& name : outputs) node.add_output(name);
}

void importStandard(onnx::ModelProto& model) { model.add_opset_import()->set_version(17); }

}  // namespace

onnx::ModelProto acmeModel(const std::string& name, int version) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  importStandard(model);
  auto* acme = model.add_opset_import();
  acme->set_domain("acme");
  acme->set_version(version);
  model.mutable_graph()->set_name(name);
  return model;
}

onnx::NodeProto* addNode(onnx::GraphProto& graph, const std::string& op, std::initializer_list<std::string> inputs,
                         std::initializer_list<std::string> outputs, const std::string& name) {
  auto* node = graph.add_node();
  fill(*node, op, inputs, outputs);
  node->set_name(name);
  return node;
}

onnx::NodeProto* addNode(onnx::FunctionProto& function, const std::string& op, std::initializer_list<std::string> inputs,
                         std::initializer_list<std::string> outputs, const std::string& domain) {
  auto* node = function.add_node();
  fill(*node, op, inputs, outputs);
  node->set_domain(domain);
  return node;
}

onnx::TensorProto* addFloats(onnx::GraphProto& graph, const std::string& name, std::initializer_list<std::int64_t> dims) {
  auto* tensor = graph.add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  std::int64_t count = 1;
  for (const std::int64_t extent : dims) {
    tensor->add_dims(extent);
    count *= extent;
  }
  for (std::int64_t i = 0; i < count; ++i) tensor->add_float_data(static_cast<float>(i));
  return tensor;
}

void addInput(onnx::GraphProto& graph, const std::string& name, std::initializer_list<std::int64_t> dims) {
  auto* info = graph.add_input();
  info->set_name(name);
  setType(*info, dims);
}

void addOutput(onnx::GraphProto& graph, const std::string& name) { graph.add_output()->set_name(name); }

onnx::AttributeProto* addGraphAttribute(onnx::NodeProto& node, const std::string& name) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::GRAPH);
  attribute->mutable_g()->set_name(name);
  return attribute;
}

onnx::FunctionProto* addFunction(onnx::ModelProto& model, const std::string& name, std::initializer_list<std::string> inputs,
                                 std::initializer_list<std::string> outputs) {
  auto* function = model.add_functions();
  function->set_name(name);
  function->set_domain("local");
  for (const auto& input : inputs) function->add_input(input);
  for (const auto& output : outputs) function->add_output(output);
  function->add_opset_import()->set_version(17);
  return function;
}

void setExternal(onnx::TensorProto& tensor, const std::string& location, const std::string& offset,
                 const std::string& length) {
  tensor.clear_float_data();
  tensor.clear_raw_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto add = [&](const char* key, const std::string& value) {
    auto* entry = tensor.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  };
  add("location", location);
  if (!offset.empty()) add("offset", offset);
  if (!length.empty()) add("length", length);
}

onnx::ModelProto smallModel() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  importStandard(model);
  auto& graph = *model.mutable_graph();
  graph.set_name("small");
  addInput(graph, "x", {2, 3});
  addFloats(graph, "w", {3, 3});
  addNode(graph, "MatMul", {"x", "w"}, {"y"}, "matmul");
  addNode(graph, "Relu", {"y"}, {"z"}, "relu");
  addOutput(graph, "z");
  return model;
}

onnx::ModelProto branchingModel() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  importStandard(model);
  auto& graph = *model.mutable_graph();
  graph.set_name("branching");
  auto* condition = graph.add_input();
  condition->set_name("cond");
  condition->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::BOOL);
  condition->mutable_type()->mutable_tensor_type()->mutable_shape();
  addInput(graph, "x", {2, 3});
  addFloats(graph, "w", {3});
  auto* node = addNode(graph, "If", {"cond"}, {"z"}, "if");
  auto& thenBranch = *addGraphAttribute(*node, "then_branch")->mutable_g();
  addNode(thenBranch, "Relu", {"x"}, {"a"}, "relu");
  addOutput(thenBranch, "a");
  auto& elseBranch = *addGraphAttribute(*node, "else_branch")->mutable_g();
  addNode(elseBranch, "Add", {"x", "w"}, {"b"}, "add");
  addOutput(elseBranch, "b");
  addOutput(graph, "z");
  return model;
}

onnx::ModelProto nestedFunctions(int functions, int calls) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  importStandard(model);
  auto* import = model.add_opset_import();
  import->set_domain("local");
  import->set_version(1);
  auto& graph = *model.mutable_graph();
  graph.set_name("nested");
  addInput(graph, "x", {2});
  addNode(graph, "F0", {"x"}, {"z"}, "call")->set_domain("local");
  addOutput(graph, "z");
  for (int i = 0; i < functions; ++i) {
    auto* function = addFunction(model, "F" + std::to_string(i), {"a"}, {"b"});
    if (i + 1 == functions) {
      addNode(*function, "Relu", {"a"}, {"b"});
      continue;
    }
    for (int call = 0; call < calls; ++call)
      addNode(*function, "F" + std::to_string(i + 1), {call == 0 ? "a" : "t" + std::to_string(call)},
              {call + 1 == calls ? "b" : "t" + std::to_string(call + 1)}, "local");
  }
  return model;
}

Result<LoadedModel> parse(const onnx::ModelProto& model, const std::filesystem::path& folder, const LoadOptions& options,
                          std::vector<Problem>* problems) {
  const std::string bytes = model.SerializeAsString();
  return parseModel(std::as_bytes(std::span(bytes)), folder, options, problems);
}

Result<LoadedModel> parse(const std::string& bytes, const std::filesystem::path& folder) {
  return parseModel(std::as_bytes(std::span(bytes)), folder);
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "stepscope-test-XXXXXX").string();
  SS_CHECK(::mkdtemp(name.data()) != nullptr);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TemporaryFolder::write(const std::string& name, const std::string& bytes) const {
  std::filesystem::create_directories((path_ / name).parent_path());
  std::ofstream(path_ / name, std::ios::binary) << bytes;
  return path_ / name;
}

std::optional<std::filesystem::path> corpusFolder() {
  const char* shared = std::getenv("STEPSCOPE_SHARED");
  const std::filesystem::path folder = std::filesystem::path(shared ? shared : SS_SOURCE_FOLDER "/../shared") / "corpus";
  return std::filesystem::is_directory(folder) ? std::optional(folder) : std::nullopt;
}

std::vector<std::filesystem::path> corpusModels() {
  std::vector<std::filesystem::path> models;
  if (const auto folder = corpusFolder())
    for (const auto& entry : std::filesystem::recursive_directory_iterator(*folder))
      if (entry.path().extension() == ".onnx") models.push_back(entry.path());
  std::sort(models.begin(), models.end());
  return models;
}

}  // namespace stepscope::testing

// Small models for the tests, as protos.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/onnx/reader.h"

namespace stepscope::testing {

// IR 8, opset 17, and domain acme of that version.
onnx::ModelProto acmeModel(const std::string& name, int version = 1);
onnx::NodeProto* addNode(onnx::GraphProto& graph, const std::string& op, std::initializer_list<std::string> inputs,
                         std::initializer_list<std::string> outputs, const std::string& name = "");
onnx::TensorProto* addFloats(onnx::GraphProto& graph, const std::string& name, std::initializer_list<std::int64_t> dims);
void addInput(onnx::GraphProto& graph, const std::string& name, std::initializer_list<std::int64_t> dims);
void addOutput(onnx::GraphProto& graph, const std::string& name);
onnx::AttributeProto* addGraphAttribute(onnx::NodeProto& node, const std::string& name);
onnx::FunctionProto* addFunction(onnx::ModelProto& model, const std::string& name, std::initializer_list<std::string> inputs,
                                 std::initializer_list<std::string> outputs);
onnx::NodeProto* addNode(onnx::FunctionProto& function, const std::string& op, std::initializer_list<std::string> inputs,
                         std::initializer_list<std::string> outputs, const std::string& domain = "");
void setExternal(onnx::TensorProto& tensor, const std::string& location, const std::string& offset = "",
                 const std::string& length = "");

// IR 8, opset 17: z = Relu(MatMul(x, w)) with x float32[2, 3] and w float32[3, 3].
onnx::ModelProto smallModel();
// cond, x → If(cond): then Relu(x), else x + w. Both branches use values of the main graph.
onnx::ModelProto branchingModel();
// One level per function: F0 calls F1 calls … the last is a Relu; or `calls` calls each, in a row.
onnx::ModelProto nestedFunctions(int functions, int calls = 1);

Result<LoadedModel> parse(const onnx::ModelProto& model, const std::filesystem::path& folder = "/nonexistent",
                          const LoadOptions& options = {}, std::vector<Problem>* problems = nullptr);
Result<LoadedModel> parse(const std::string& bytes, const std::filesystem::path& folder = "/nonexistent");

// A fresh folder, removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, const std::string& bytes) const;

 private:
  std::filesystem::path path_;
};

// The folder of exported models that the project is tested with, when it is there: $STEPSCOPE_SHARED/corpus, or
// ../shared/corpus next to the source tree.
std::optional<std::filesystem::path> corpusFolder();
std::vector<std::filesystem::path> corpusModels();  // every .onnx below it, sorted

}  // namespace stepscope::testing

#include "engine/onnx/onnxruntime_optimizer.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include "engine/data/file.h"
#include "engine/data/limits.h"

namespace stepscope {
namespace {

constexpr const char* kDomain = "com.microsoft";

double realOf(const onnx::NodeProto& node, std::string_view name, double absent) {
  for (const onnx::AttributeProto& attribute : node.attribute())
    if (attribute.name() == name) return static_cast<double>(attribute.f());
  return absent;
}

std::int64_t integerOf(const onnx::NodeProto& node, std::string_view name, std::int64_t absent) {
  for (const onnx::AttributeProto& attribute : node.attribute())
    if (attribute.name() == name) return attribute.i();
  return absent;
}

void addReal(onnx::NodeProto& node, const char* name, double value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::FLOAT);
  attribute.set_f(static_cast<float>(value));
}

void addInteger(onnx::NodeProto& node, const char* name, std::int64_t value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

void setVector(onnx::ValueInfoProto& value, const char* name, int type) {
  value.set_name(name);
  onnx::TypeProto::Tensor& tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape()->add_dim()->set_dim_value(1);
}

void setSequence(onnx::ValueInfoProto& value, const char* name) {
  value.set_name(name);
  onnx::TypeProto& element = *value.mutable_type()->mutable_sequence_type()->mutable_elem_type();
  element.mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
}

onnx::NodeProto& addNode(onnx::GraphProto& graph, const char* op, std::initializer_list<const char*> inputs,
                         const char* output) {
  onnx::NodeProto& node = *graph.add_node();
  node.set_name(op);
  node.set_op_type(op);
  node.set_domain(kDomain);
  for (const char* input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

void readAdamw(const onnx::NodeProto& node, OnnxruntimeOptimizer& optimizer) {
  optimizer.kind = OnnxruntimeOptimizer::Kind::kAdamw;
  optimizer.beta1 = realOf(node, "alpha", 0.9);
  optimizer.beta2 = realOf(node, "beta", 0.999);
  optimizer.epsilon = realOf(node, "epsilon", 1e-8);
  optimizer.weightDecay = realOf(node, "weight_decay", 1e-2);
  optimizer.biasCorrection = integerOf(node, "correct_bias", 1) != 0;
  optimizer.mode =
      integerOf(node, "adam_mode", 0) == 0 ? OnnxruntimeOptimizer::Mode::kTorch : OnnxruntimeOptimizer::Mode::kTransformers;
}

}  // namespace

Result<OnnxruntimeOptimizer> readOnnxruntimeOptimizer(const std::filesystem::path& path) {
  SS_ASSIGN(const auto bytes, readWholeFile(path, limits::kModelFileBytes, "optimizer model"));
  onnx::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || model.graph().node().empty())
    return fail(ErrorCode::kCorrupt, fmt::format("optimizer model '{}': not an ONNX model", path.string()));
  OnnxruntimeOptimizer optimizer;
  int updates = 0;
  std::string others;
  for (const onnx::NodeProto& node : model.graph().node()) {
    if (node.op_type() == "AdamWOptimizer") {
      readAdamw(node, optimizer);
      ++updates;
    } else if (node.op_type() == "SGDOptimizerV2") {
      optimizer.kind = OnnxruntimeOptimizer::Kind::kSgd;
      ++updates;
    } else if (node.op_type() == "InplaceClipGradNorm") {
      optimizer.clipNorm = realOf(node, "max_norm", 1.0);
    } else {
      others += (others.empty() ? "" : ", ") + node.op_type();
    }
  }
  if (updates == 1 && others.empty()) return optimizer;
  return unsupported(
      fmt::format("optimizer model '{}': {} of AdamWOptimizer and SGDOptimizerV2{}{}; expected one of them, "
                  "and InplaceClipGradNorm at most",
                  path.string(), updates, others.empty() ? "" : " and the nodes ", others));
}

Status writeOnnxruntimeOptimizer(const std::filesystem::path& path, const OnnxruntimeOptimizer& optimizer) {
  const bool adamw = optimizer.kind == OnnxruntimeOptimizer::Kind::kAdamw;
  onnx::ModelProto model;
  model.set_ir_version(9);
  model.set_producer_name("stepscope");
  onnx::OperatorSetIdProto& plain = *model.add_opset_import();
  plain.set_domain("");
  plain.set_version(17);
  onnx::OperatorSetIdProto& microsoft = *model.add_opset_import();
  microsoft.set_domain(kDomain);
  microsoft.set_version(1);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("optimizer");
  setVector(*graph.add_input(), "learning_rate", onnx::TensorProto::FLOAT);
  setVector(*graph.add_input(), "step", onnx::TensorProto::INT64);
  for (const char* name : {"params", "gradients", "first_order_moments"}) setSequence(*graph.add_input(), name);
  if (adamw) setSequence(*graph.add_input(), "second_order_moments");
  setVector(*graph.add_output(), "update_completed", onnx::TensorProto::BOOL);
  const char* gradients = "gradients";
  if (optimizer.clipNorm > 0) {
    addReal(addNode(graph, "InplaceClipGradNorm", {gradients}, "clipped_gradients"), "max_norm", optimizer.clipNorm);
    gradients = "clipped_gradients";
  }
  if (adamw) {
    onnx::NodeProto& update = addNode(
        graph, "AdamWOptimizer",
        {"learning_rate", "step", "params", gradients, "first_order_moments", "second_order_moments"}, "update_completed");
    addReal(update, "alpha", optimizer.beta1);
    addReal(update, "beta", optimizer.beta2);
    addReal(update, "epsilon", optimizer.epsilon);
    addReal(update, "weight_decay", optimizer.weightDecay);
    addInteger(update, "correct_bias", optimizer.biasCorrection ? 1 : 0);
    addInteger(update, "adam_mode", optimizer.mode == OnnxruntimeOptimizer::Mode::kTorch ? 0 : 1);
  } else {
    addNode(graph, "SGDOptimizerV2", {"learning_rate", "params", gradients}, "update_completed");
  }
  const std::string bytes = model.SerializeAsString();
  AtomicFile file(path);
  SS_TRY(file.open());
  SS_TRY(file.append(bytes.data(), bytes.size()));
  return file.commit();
}

}  // namespace stepscope

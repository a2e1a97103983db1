#include "storage/pytorch/operator_kinds.h"

#include <algorithm>

namespace stepscope::storage {
namespace {

const std::vector<OperatorKind>& kinds() {
  static const std::vector<OperatorKind> kAll = {
      {"linear", 1, {"Gemm", "MatMul"}},
      {"addmm", 2, {"Gemm", "MatMul"}},
      {"mm", 1, {"MatMul", "Gemm"}},
      {"matmul", 1, {"MatMul", "Gemm"}},
      {"bmm", -1, {"MatMul", "Gemm", "Einsum"}},
      {"baddbmm", -1, {"MatMul", "Gemm", "Einsum"}},
      {"einsum", -1, {"Einsum", "MatMul", "Gemm"}},
      {"conv1d", 1, {"Conv"}},
      {"conv2d", 1, {"Conv"}},
      {"conv3d", 1, {"Conv"}},
      {"convolution", 1, {"Conv", "ConvTranspose"}},
      {"conv_transpose1d", 1, {"ConvTranspose"}},
      {"conv_transpose2d", 1, {"ConvTranspose"}},
      {"conv_transpose3d", 1, {"ConvTranspose"}},
      {"embedding", 0, {"Gather"}},
      {"index_select", -1, {"Gather"}},
      {"index", -1, {"Gather", "GatherND"}},
      {"gather", -1, {"GatherElements"}},
      {"layer_norm", 2, {"LayerNormalization"}},
      {"native_layer_norm", 2, {"LayerNormalization"}},
      {"batch_norm", 1, {"BatchNormalization"}},
      {"native_batch_norm", 1, {"BatchNormalization"}},
      {"group_norm", 2, {"GroupNormalization", "InstanceNormalization"}},
      {"instance_norm", 1, {"InstanceNormalization"}},
      {"rms_norm", 2, {"RMSNormalization", "SimplifiedLayerNormalization"}},
      {"softmax", -1, {"Softmax"}},
      {"scaled_dot_product_attention", -1, {"Softmax", "Attention"}},
      {"log_softmax", -1, {"LogSoftmax"}},
      {"cross_entropy_loss", -1, {"SoftmaxCrossEntropyLoss"}},
      {"nll_loss", -1, {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}},
      {"nll_loss_nd", -1, {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}},
      {"mse_loss", -1, {"ReduceMean"}},
      {"l1_loss", -1, {"ReduceMean"}},
      {"dropout", -1, {"Dropout"}},
      {"native_dropout", -1, {"Dropout"}},
      {"relu", -1, {"Relu"}},
      {"gelu", -1, {"Gelu", "Erf", "Tanh"}},
      {"silu", -1, {"Sigmoid", "Swish"}},
      {"sigmoid", -1, {"Sigmoid"}},
      {"tanh", -1, {"Tanh"}},
      {"elu", -1, {"Elu"}},
      {"leaky_relu", -1, {"LeakyRelu"}},
      {"prelu", -1, {"PRelu"}},
      {"softplus", -1, {"Softplus"}},
      {"hardswish", -1, {"HardSwish"}},
      {"hardtanh", -1, {"Clip"}},
      {"clamp", -1, {"Clip"}},
      {"max_pool1d", -1, {"MaxPool"}},
      {"max_pool2d", -1, {"MaxPool"}},
      {"max_pool3d", -1, {"MaxPool"}},
      {"avg_pool2d", -1, {"AveragePool"}},
      {"adaptive_avg_pool2d", -1, {"GlobalAveragePool", "AveragePool", "ReduceMean"}},
      {"lstm", -1, {"LSTM"}},
      {"gru", -1, {"GRU"}},
      {"rnn_tanh", -1, {"RNN"}},
      {"rnn_relu", -1, {"RNN"}},
      {"cat", -1, {"Concat", "Join"}},
      {"mean", -1, {"ReduceMean"}},
      {"sum", -1, {"ReduceSum"}},
      {"add", -1, {"Add"}},
      {"sub", -1, {"Sub"}},
      {"mul", -1, {"Mul"}},
      {"div", -1, {"Div"}},
      {"exp", -1, {"Exp"}},
      {"log", -1, {"Log"}},
      {"sqrt", -1, {"Sqrt"}},
      {"pow", -1, {"Pow"}},
  };
  return kAll;
}

}  // namespace

const OperatorKind* operatorKind(std::string_view torchName) {
  constexpr std::string_view kNamespace = "aten::";
  if (!torchName.starts_with(kNamespace)) return nullptr;
  torchName.remove_prefix(kNamespace.size());
  if (torchName.starts_with('_')) torchName.remove_prefix(1);
  if (torchName.ends_with('_')) torchName.remove_suffix(1);
  const auto found = std::ranges::find(kinds(), torchName, &OperatorKind::torch);
  return found == kinds().end() ? nullptr : &*found;
}

std::vector<std::string> torchNames(std::string_view onnx) {
  std::vector<std::string> out;
  for (const OperatorKind& kind : kinds())
    if (std::ranges::find(kind.onnx, onnx) != kind.onnx.end()) out.emplace_back(kind.torch);
  return out;
}

int weightInput(std::string_view onnx) {
  if (onnx == "Gather") return 0;
  for (const std::string_view op :
       {"Gemm", "MatMul", "Conv", "ConvTranspose", "LayerNormalization", "BatchNormalization", "GroupNormalization",
        "InstanceNormalization", "RMSNormalization", "SimplifiedLayerNormalization"})
    if (onnx == op) return 1;
  return -1;
}

}  // namespace stepscope::storage

#include "engine/passes/check_attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace stepscope {
namespace {

// Names are separated by blanks. "to!" is required; "axes!13" is required of nodes older than opset 13.
struct Form {
  std::string_view op, attributes;
};

// Sorted by op; `winograd` is what pass choose_winograd writes and `sample_variance` the reader, of a graph that was saved.
// Source: onnx/docs/Operators.md and Changelog.md.
constexpr Form kForms[] = {
    {"AffineGrid", "align_corners"},
    {"ArgMax", "axis keepdims select_last_index"},
    {"ArgMin", "axis keepdims select_last_index"},
    {"Attention", "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap softmax_precision"},
    {"AveragePool", "auto_pad ceil_mode count_include_pad dilations kernel_shape! pads strides"},
    {"BatchNormalization", "consumed_inputs epsilon is_test momentum sample_variance spatial training_mode"},
    {"Bernoulli", "dtype seed"},
    {"BitShift", "direction!"},
    {"BlackmanWindow", "output_datatype periodic"},
    {"Cast", "round_mode saturate to!"},
    {"CastLike", "round_mode saturate"},
    {"Celu", "alpha"},
    {"CenterCropPad", "axes"},
    {"Clip", "consumed_inputs max min"},
    {"Col2Im", "dilations pads strides"},
    {"Compress", "axis"},
    {"Concat", "axis!"},
    {"ConcatFromSequence", "axis! new_axis"},
    {"Constant", "sparse_value value value_float value_floats value_int value_ints value_string value_strings"},
    {"ConstantOfShape", "value"},
    {"Conv", "auto_pad dilations group kernel_shape pads strides winograd"},
    {"ConvInteger", "auto_pad dilations group kernel_shape pads strides"},
    {"ConvTranspose", "auto_pad dilations group kernel_shape output_padding output_shape pads strides"},
    {"CumProd", "exclusive reverse"},
    {"CumSum", "exclusive reverse"},
    {"DFT", "axis inverse onesided"},
    {"DeformConv", "dilations group kernel_shape offset_group pads strides"},
    {"DepthToSpace", "blocksize! mode"},
    {"DequantizeLinear", "axis block_size output_dtype"},
    {"Dropout", "consumed_inputs is_test ratio seed"},
    {"Einsum", "equation!"},
    {"Elu", "alpha consumed_inputs"},
    {"EyeLike", "dtype k"},
    {"Flatten", "axis"},
    {"GRU",
     "activation_alpha activation_beta activations clip direction hidden_size layout linear_before_reset output_sequence"},
    {"Gather", "axis"},
    {"GatherElements", "axis"},
    {"GatherND", "batch_dims"},
    {"Gelu", "approximate"},
    {"Gemm", "alpha beta broadcast transA transB"},
    {"GlobalLpPool", "p"},
    {"GridSample", "align_corners mode padding_mode"},
    {"GroupNormalization", "epsilon num_groups! stash_type"},
    {"HammingWindow", "output_datatype periodic"},
    {"HannWindow", "output_datatype periodic"},
    {"HardSigmoid", "alpha beta consumed_inputs"},
    {"Hardmax", "axis"},
    {"If", "else_branch! then_branch!"},
    {"ImageDecoder", "pixel_format"},
    {"InstanceNormalization", "consumed_inputs epsilon"},
    {"IsInf", "detect_negative detect_positive"},
    {"LRN", "alpha beta bias size!"},
    {"LSTM", "activation_alpha activation_beta activations clip direction hidden_size input_forget layout output_sequence"},
    {"LayerNormalization", "axis epsilon stash_type"},
    {"LeakyRelu", "alpha consumed_inputs"},
    {"LogSoftmax", "axis"},
    {"Loop", "body!"},
    {"LpNormalization", "axis p"},
    {"LpPool", "auto_pad ceil_mode dilations kernel_shape! p pads strides"},
    {"MaxPool", "auto_pad ceil_mode dilations kernel_shape! pads storage_order strides"},
    {"MaxRoiPool", "pooled_shape! spatial_scale"},
    {"MaxUnpool", "kernel_shape! pads strides"},
    {"MeanVarianceNormalization", "across_channels axes normalize_variance"},
    {"MelWeightMatrix", "output_datatype"},
    {"Mod", "fmod"},
    {"Multinomial", "dtype sample_size seed"},
    {"NegativeLogLikelihoodLoss", "ignore_index reduction"},
    {"NonMaxSuppression", "center_point_box"},
    {"OneHot", "axis"},
    {"Optional", "type"},
    {"Pad", "mode pads!11 value"},
    {"QLinearConv", "auto_pad dilations group kernel_shape pads strides"},
    {"QuantizeLinear", "axis block_size output_dtype precision saturate"},
    {"RMSNormalization", "axis epsilon stash_type"},
    {"RNN", "activation_alpha activation_beta activations clip direction hidden_size layout output_sequence"},
    {"RandomNormal", "dtype mean scale seed shape!"},
    {"RandomNormalLike", "dtype mean scale seed"},
    {"RandomUniform", "dtype high low seed shape!"},
    {"RandomUniformLike", "dtype high low seed"},
    {"Range", "stash_type"},
    {"ReduceL1", "axes keepdims noop_with_empty_axes"},
    {"ReduceL2", "axes keepdims noop_with_empty_axes"},
    {"ReduceLogSum", "axes keepdims noop_with_empty_axes"},
    {"ReduceLogSumExp", "axes keepdims noop_with_empty_axes"},
    {"ReduceMax", "axes keepdims noop_with_empty_axes"},
    {"ReduceMean", "axes keepdims noop_with_empty_axes"},
    {"ReduceMin", "axes keepdims noop_with_empty_axes"},
    {"ReduceProd", "axes keepdims noop_with_empty_axes"},
    {"ReduceSum", "axes keepdims noop_with_empty_axes"},
    {"ReduceSumSquare", "axes keepdims noop_with_empty_axes"},
    {"RegexFullMatch", "pattern"},
    {"Reshape", "allowzero consumed_inputs shape"},
    {"Resize",
     "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value "
     "keep_aspect_ratio_policy "
     "mode nearest_mode"},
    {"ReverseSequence", "batch_axis time_axis"},
    {"RoiAlign", "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale"},
    {"RotaryEmbedding", "interleaved num_heads rotary_embedding_dim"},
    {"STFT", "onesided"},
    {"Scan",
     "body! directions num_scan_inputs!9+ scan_input_axes scan_input_directions scan_output_axes scan_output_directions"},
    {"Scatter", "axis"},
    {"ScatterElements", "axis reduction"},
    {"ScatterND", "reduction"},
    {"Selu", "alpha consumed_inputs gamma"},
    {"SequenceEmpty", "dtype"},
    {"SequenceMap", "body!"},
    {"Shape", "end start"},
    {"Shrink", "bias lambd"},
    {"Slice", "axes ends!10 starts!10"},
    {"Softmax", "axis"},
    {"SoftmaxCrossEntropyLoss", "ignore_index reduction"},
    {"SpaceToDepth", "blocksize! mode"},
    {"Split", "axis num_outputs split"},
    {"SplitToSequence", "axis keepdims"},
    {"Squeeze", "axes"},
    {"StringNormalizer", "case_change_action is_case_sensitive locale stopwords"},
    {"StringSplit", "delimiter maxsplit"},
    {"SwiGLU", "alpha"},
    {"Swish", "alpha"},
    {"ThresholdedRelu", "alpha"},
    {"TopK", "axis k!10 largest sorted"},
    {"Transpose", "perm"},
    {"Trilu", "upper"},
    {"Unique", "axis sorted"},
    {"Unsqueeze", "axes!13"},
    {"Upsample", "height_scale mode scales!9 width_scale"},
};

static_assert(std::is_sorted(std::begin(kForms), std::end(kForms),
                             [](const Form& a, const Form& b) { return a.op < b.op; }));

// Ops of the default domain without any attribute, as far as opsets 7 to 25 go: another one is unknown to them too.
constexpr std::string_view kWithout[] = {"Abs",
                                         "Acos",
                                         "Acosh",
                                         "Add",
                                         "And",
                                         "Asin",
                                         "Asinh",
                                         "Atan",
                                         "Atanh",
                                         "BitwiseAnd",
                                         "BitwiseNot",
                                         "BitwiseOr",
                                         "BitwiseXor",
                                         "Ceil",
                                         "Cos",
                                         "Cosh",
                                         "Det",
                                         "Div",
                                         "Equal",
                                         "Erf",
                                         "Exp",
                                         "Expand",
                                         "Floor",
                                         "GlobalAveragePool",
                                         "GlobalMaxPool",
                                         "Greater",
                                         "GreaterOrEqual",
                                         "HardSwish",
                                         "Identity",
                                         "IsNaN",
                                         "Less",
                                         "LessOrEqual",
                                         "Log",
                                         "MatMul",
                                         "MatMulInteger",
                                         "Max",
                                         "Mean",
                                         "Min",
                                         "Mish",
                                         "Mul",
                                         "Neg",
                                         "NonZero",
                                         "Not",
                                         "Or",
                                         "PRelu",
                                         "Pow",
                                         "QLinearMatMul",
                                         "Reciprocal",
                                         "Relu",
                                         "Round",
                                         "SequenceAt",
                                         "SequenceConstruct",
                                         "SequenceErase",
                                         "SequenceInsert",
                                         "SequenceLength",
                                         "Sigmoid",
                                         "Sign",
                                         "Sin",
                                         "Sinh",
                                         "Size",
                                         "Softplus",
                                         "Softsign",
                                         "Sqrt",
                                         "Sub",
                                         "Sum",
                                         "Tan",
                                         "Tanh",
                                         "Tile",
                                         "Where",
                                         "Xor"};

const Form* formOf(std::string_view op) {
  static constexpr Form kNone{"", ""};
  const auto* form = std::lower_bound(std::begin(kForms), std::end(kForms), op,
                                      [](const Form& f, std::string_view name) { return f.op < name; });
  if (form != std::end(kForms) && form->op == op) return form;
  return std::find(std::begin(kWithout), std::end(kWithout), op) != std::end(kWithout) ? &kNone : nullptr;
}

struct Known {
  std::string_view name;
  bool required = false;
};

std::vector<Known> knownOf(const Form& form, int version) {
  std::vector<Known> known;
  std::string_view rest = form.attributes;
  while (!rest.empty()) {
    const std::size_t blank = std::min(rest.find(' '), rest.size());
    std::string_view word = rest.substr(0, blank);
    rest.remove_prefix(std::min(blank + 1, rest.size()));
    const std::size_t mark = word.find('!');
    Known entry{word.substr(0, mark)};
    if (mark != std::string_view::npos) {
      word.remove_prefix(mark + 1);
      int limit = 0;
      std::from_chars(word.data(), word.data() + word.size(), limit);
      entry.required = word.empty() || (word.back() == '+' ? version >= limit : version < limit);
    }
    known.push_back(entry);
  }
  return known;
}

bool carries(const Node& node, std::string_view name) {
  const std::string key(name);
  return node.attrs.has(name) || node.subgraphs.contains(key) || node.attributeReferences.contains(key);
}

// Attributes that only opsets before 7 have (raise_early reads them); some that are required today were not.
bool isOfEarlyOpsets(std::string_view name) {
  static constexpr std::string_view kEarly[] = {"axis",         "broadcast", "consumed_inputs",
                                                "height_scale", "is_test",   "output_sequence",
                                                "paddings",     "shape",     "width_scale"};
  return std::find(std::begin(kEarly), std::end(kEarly), name) != std::end(kEarly);
}

void checkNode(const Node& node, int version, std::vector<AttributeFinding>& findings) {
  const Form* form = formOf(node.op);
  if (form == nullptr) return;
  const bool early = version < 7;
  const std::vector<Known> known = knownOf(*form, version);
  for (const Known& attribute : known)
    if (attribute.required && !early && !carries(node, attribute.name))
      findings.push_back(
          {node.label(), fmt::format("attribute '{}' is missing; {} needs it", attribute.name, node.op), true});
  const auto judge = [&](const std::string& name) {
    if (name.starts_with("stepscope.")) return;  // our own mark, of a graph that was saved
    if (early && isOfEarlyOpsets(name)) return;
    if (std::any_of(known.begin(), known.end(), [&](const Known& entry) { return entry.name == name; })) return;
    std::string names;
    for (const Known& entry : known) names += (names.empty() ? "" : ", ") + std::string(entry.name);
    findings.push_back({node.label(), fmt::format("attribute '{}' is not one of {}, it has no effect; known: {}", name,
                                                  node.op, names.empty() ? "none" : names)});
  };
  for (const auto& [name, value] : node.attrs.entries()) judge(name);
  for (const auto& [name, body] : node.subgraphs) judge(name);
}

}  // namespace

void checkAttributes(const Graph& graph, int opset, const std::function<bool(const Node&)>& isCall,
                     std::vector<AttributeFinding>& findings) {
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    for (const auto& [name, body] : node.subgraphs)
      if (body) checkAttributes(*body, opset, isCall, findings);
    if (node.domain.empty() && !isCall(node)) checkNode(node, node.sinceVersion > 0 ? node.sinceVersion : opset, findings);
  }
}

}  // namespace stepscope

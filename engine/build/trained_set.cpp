#include "engine/build/trained_set.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/autodiff/gradient_edges.h"
#include "engine/build/name_pattern.h"
#include "engine/passes/constant_weights.h"
#include "engine/passes/weight_role.h"

namespace stepscope {
namespace {

// Buffers that exporters store as float initializers beside the parameters.
constexpr std::array<std::string_view, 10> kBufferNames = {
    "inv_freq",    "original_inv_freq",       "position_ids", "token_type_ids", "running_mean",
    "running_var", "relative_position_index", "attn_mask",    "freqs_cis",      "relative_coords_table"};

bool isBufferName(const std::string& name) {
  const auto dot = name.rfind('.');
  const std::string_view last = dot == std::string::npos ? std::string_view(name) : std::string_view(name).substr(dot + 1);
  for (const std::string_view buffer : kBufferNames)
    if (last == buffer) return true;
  if (last.ends_with("_buffer")) return true;
  // What torch.export lifts out of the code: tensors that forward() writes down.
  static const re2::RE2 lifted(R"((c_)?(lifted_tensor_|_tensor_constant)\d+)", re2::RE2::Latin1);
  return re2::RE2::FullMatch(re2::StringPiece(last.data(), last.size()), lifted);
}

// Names that exporters give to scalar constants: "val_12", "onnx::Mul_7", "/layer/Constant_output_0",
// "scalar_tensor_default", "tmp_4" (onnxscript). A scalar parameter ("logit_scale") has the name that its module gave it.
bool isGeneratedName(const std::string& name) {
  static const re2::RE2 pattern(R"(onnx::.*|/.*|_.*|val_\d+|const.*|scalar.*|.*Constant.*|tmp(_\d+)*|\d+)",
                                re2::RE2::Latin1);
  return re2::RE2::FullMatch(name, pattern);
}

// Whether all that a value does is to bound Clips: limits that a model writes down are no parameters.
// A learned range has the path of its module in its name ("act.alpha").
std::vector<bool> boundsOnly(const Graph& graph) {
  std::vector<bool> bounds(graph.valueCapacity(), false), other(graph.valueCapacity(), false);
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.input(i))
        (node.op == "Clip" && node.domain.empty() && i > 0 ? bounds : other)[static_cast<std::size_t>(node.input(i).index)] =
            true;
  }
  for (std::size_t i = 0; i < bounds.size(); ++i) bounds[i] = bounds[i] && !other[i];
  return bounds;
}

// Names that say that a scalar is a variable of the model: the path of a module ("block.0.logit_scale"), or what TensorFlow
// reads a variable with.
bool isVariableName(const std::string& name) {
  static const re2::RE2 path(R"([A-Za-z_]\w*(\.\w+)+)", re2::RE2::Latin1);
  return re2::RE2::FullMatch(name, path) || name.find("ReadVariableOp") != std::string::npos;
}

// A scalar that only takes part in arithmetic, and whose name is not that of a variable: 1e-6, 0.044715.
bool isNumber(const Graph& graph, const UseTable& uses, const Value& value) {
  if (!value.type.shape || isVariableName(value.name)) return false;
  const auto dims = knownDims(*value.type.shape);
  if (!dims || elementCount(*dims) != 1) return false;
  // The factor that a module gave a plain name is one element as well; exporters number or path theirs.
  static const re2::RE2 plain("[A-Za-z_]*", re2::RE2::Latin1);
  return !re2::RE2::FullMatch(value.name.str(), plain) && onlyArithmetic(graph, uses, value.id) &&
         !weightRole(graph, uses, value.id);
}

// Whether an element is infinite or NaN. Values in the role of a weight are not looked through: they may be large.
bool hasInfinity(const Graph& graph, const UseTable& uses, const Value& value) {
  if (!value.data || weightRole(graph, uses, value.id)) return false;
  const auto contents = value.data.read();
  for (std::int64_t k = 0; contents && k < contents->elements(); ++k)
    if (!std::isfinite(elementAsDouble(contents->view(), k))) return true;
  return false;
}

Result<std::optional<NamePattern>> compile(const char* option, const std::string& text) {
  if (text.empty()) return std::optional<NamePattern>{};
  SS_ASSIGN(NamePattern pattern, NamePattern::compile(option, text));
  return std::optional(std::move(pattern));
}

}  // namespace

Result<std::vector<ParameterChoice>> chooseTrained(const Graph& graph, ValueId loss, const TrainOptions& options,
                                                   const OpRegistry& ops) {
  SS_ASSIGN(const auto train, compile("train", options.train));
  SS_ASSIGN(const auto freeze, compile("freeze", options.freeze));
  std::vector<bool> statistics(graph.valueCapacity(), false);
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.op != "BatchNormalization") continue;
    for (const std::size_t slot : {3u, 4u})
      if (node.input(slot)) statistics[static_cast<std::size_t>(node.input(slot).index)] = true;
  }
  std::vector<bool> blockScales(graph.valueCapacity(), false);  // of frozen weights
  for (const NodeId id : graph.order())
    if (const Node& node = graph.node(id);
        node.op == "DequantizeLinear" && node.domain.empty() && node.input(1) && node.attrs.integer("block_size", 0) != 0)
      blockScales[static_cast<std::size_t>(node.input(1).index)] = true;
  const std::vector<bool> bounds = boundsOnly(graph), constants = madeFromConstants(graph);
  const UseTable uses = graph.uses();
  std::vector<ValueId> candidates;
  for (std::size_t i = 0; i < graph.valueCapacity(); ++i) {
    const Value& value = graph.value({static_cast<std::int32_t>(i)});
    if (graph.alive(value.id) && value.role == ValueRole::kInitializer) candidates.push_back(value.id);
  }
  const std::vector<bool> reaches = reachesLoss(graph, loss, candidates, ops);
  std::vector<ParameterChoice> choices;
  bool trainMatched = false;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Value& value = graph.value(candidates[i]);
    const bool selected = train && train->foundIn(value.name), frozen = freeze && freeze->foundIn(value.name);
    trainMatched |= selected;
    ParameterChoice choice{value.id, false, ""};
    if (!isFloating(value.type.dtype))
      choice.reason = fmt::format("{} cannot carry a gradient", dtypeName(value.type.dtype));
    else if (statistics[static_cast<std::size_t>(value.id.index)])
      choice.reason = "running statistic of BatchNormalization";
    else if (!reaches[i])
      choice.reason = "does not reach the loss";
    else if (frozen)
      choice.reason = fmt::format("matched by --freeze '{}'", options.freeze);
    else if (train && !selected)
      choice.reason = fmt::format("not matched by --train '{}'", options.train);
    else if (blockScales[static_cast<std::size_t>(value.id.index)])
      choice.reason = "a scale of weights in blocks, which are frozen";
    else if (!selected && isBufferName(value.name))
      choice.reason = "a buffer by its name; --train selects it";
    else if (!selected && value.type.shape && value.type.shape->empty() && isGeneratedName(value.name))
      choice.reason = "a scalar constant of the exporter; --train selects it";
    else if (!selected && bounds[static_cast<std::size_t>(value.id.index)] && value.name.find('.') == std::string::npos)
      choice.reason = "a bound of Clip; --train selects it";
    else if (!selected && isNumber(graph, uses, value))
      choice.reason = "a number in arithmetic, by its name no variable; --train selects it";
    else if (!selected && isNeutralInGroupNorm(graph, uses, value.id))
      choice.reason = "ones or zeros that GroupNormalization is written out with; --train selects it";
    else if (!selected && hasInfinity(graph, uses, value))
      choice.reason = "an element is infinite or NaN; --train selects it";
    else {
      choice.trained = true;
      choice.reason = selected ? fmt::format("matched by --train '{}'", options.train) : "reaches the loss";
      if (const auto role =
              constants[static_cast<std::size_t>(value.id.index)] ? weightRole(graph, uses, value.id) : std::nullopt)
        choice.reason += fmt::format("; a Constant of the file that is {}", role->text(graph));
    }
    choices.push_back(std::move(choice));
  }
  if (train && !trainMatched)
    return invalidOption("train", fmt::format("'{}' matches no initializer; `stepscope inspect` lists them", options.train));
  return choices;
}

std::vector<std::string> patternsWithoutMatch(const Graph& graph, const std::vector<ParameterChoice>& choices,
                                              const TrainOptions& options) {
  const auto matches = [&](const std::string& text, bool trainedOnly) {
    const auto pattern = compile("freeze", text);
    return pattern && *pattern && std::any_of(choices.begin(), choices.end(), [&](const ParameterChoice& choice) {
             return (choice.trained || !trainedOnly) && (*pattern)->foundIn(graph.value(choice.value).name);
           });
  };
  std::vector<std::string> texts;
  if (!options.freeze.empty() && !matches(options.freeze, false))
    texts.push_back(
        fmt::format("option 'freeze': '{}' matches no initializer; `stepscope inspect` lists them", options.freeze));
  for (const ParameterGroup& group : options.groups)
    if (!matches(group.regex, true))
      texts.push_back(fmt::format("option 'group': '{}' matches no trained parameter", group.regex));
  return texts;
}

}  // namespace stepscope

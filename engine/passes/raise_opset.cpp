#include "engine/passes/raise_opset.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "engine/ops/op_def.h"
#include "engine/passes/beside.h"

namespace stepscope {
namespace {

constexpr int kOldestOpset = 7, kNewestOpset = 28;

class Raiser {
 public:
  Raiser(Graph& graph, int fromOpset, std::vector<std::string>& warnings)
      : graph_(graph), fromOpset_(fromOpset), warnings_(warnings) {}

  Result<std::size_t> run() {
    std::vector<NodeId> order;
    for (const NodeId id : std::vector<NodeId>(graph_.order())) {
      before_.clear();
      after_.clear();
      SS_TRY(raiseSubgraphs(id));
      SS_TRY(raise(id));
      order.insert(order.end(), before_.begin(), before_.end());
      order.push_back(id);
      order.insert(order.end(), after_.begin(), after_.end());
    }
    if (order != graph_.order()) graph_.setOrder(std::move(order));
    return raised_;
  }

 private:
  using Rule = Status (Raiser::*)();
  struct Entry {
    std::string_view op;
    int below;  // the rule is for nodes of an older opset than this
    Rule rule;
  };
  struct NewerEntry {
    std::string_view op;
    Rule rule;
  };

  Status raiseSubgraphs(NodeId id) {
    if (graph_.node(id).subgraphs.empty()) return {};
    for (auto& [name, subgraph] : graph_.mutableNode(id).subgraphs.edit()) {
      if (!subgraph) continue;
      auto copy = std::make_shared<Graph>(*subgraph);
      copy->setPass(graph_.pass());
      SS_ASSIGN(const std::size_t raised, Raiser(*copy, fromOpset_, warnings_).run());
      subgraph = std::move(copy);
      if (raised > 0) graph_.logChange(id);
      raised_ += raised;
    }
    return {};
  }

  Status raise(NodeId id) {
    node_ = id;
    if (!node().domain.empty()) return {};
    version_ = node().sinceVersion > 0 ? node().sinceVersion : fromOpset_;
    if (version_ < kOldestOpset || version_ > kNewestOpset)
      return unsupported(
          fmt::format("{}: opset {}; expected {} to {}", node().label(), version_, kOldestOpset, kNewestOpset));
    const std::uint64_t before = graph_.version();
    for (const Entry& entry : rules())
      if (entry.op == node().op && version_ < entry.below) SS_TRY((this->*entry.rule)());
    if (version_ > kInternalOpset)
      for (const NewerEntry& entry : newerRules())
        if (entry.op == node().op) SS_TRY((this->*entry.rule)());
    if (graph_.version() != before) ++raised_;
    if (node().sinceVersion != kInternalOpset) graph_.mutableNode(id).sinceVersion = kInternalOpset;
    return {};
  }

  // --- the node at hand

  const Node& node() const { return graph_.node(node_); }
  const Attributes& attrs() const { return node().attrs; }
  void setInput(std::size_t i, ValueId value) { graph_.setInput(node_, i, value); }
  void setAttribute(const char* name, AttrValue value) {
    graph_.mutableNode(node_).attrs.set(name, std::move(value));
    graph_.logChange(node_);
  }
  void eraseAttribute(std::string_view name) {
    if (!attrs().has(name)) return;
    graph_.mutableNode(node_).attrs.erase(name);
    graph_.logChange(node_);
  }
  void rename(const char* op) {
    graph_.mutableNode(node_).op = op;
    graph_.logChange(node_);
  }
  tl::unexpected<Error> error(std::string message) const { return unsupported(node().label() + ": " + std::move(message)); }
  void warn(std::string message) { warnings_.push_back(node().label() + ": " + std::move(message)); }

  ValueId constant(const char* what, Tensor tensor) {
    return graph_.addConstant(node().name + "/" + what, std::move(tensor));
  }
  ValueId ints(const char* what, const std::vector<std::int64_t>& values) { return constant(what, Tensor::ints(values)); }
  ValueId floatScalar(const char* what, float value) { return constant(what, Tensor::scalar(DType::kF32, value)); }

  // A helper node with one output, before the node.
  ValueId emit(const char* op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    const ValueId result = emitBeside(graph_, node_, op, std::move(inputs), std::move(attributes));
    before_.push_back(graph_.value(result).producer);
    return result;
  }

  // Output 0, which keeps its id and name, becomes that of `op` applied to what the node now makes.
  void finishWith(const char* op, std::vector<ValueId> moreInputs, Attributes attributes = {}) {
    const ValueId result = node().output(0);
    if (!result) return;
    const NodeId last = addBeside(graph_, node_, op, {}, {}, std::move(attributes));
    after_.push_back(last);
    std::vector<ValueId> inputs{takeOver(graph_, last, result, "raw")};
    inputs.insert(inputs.end(), moreInputs.begin(), moreInputs.end());
    graph_.mutableNode(last).inputs = std::move(inputs);
  }

  // --- rules

  Status axesToInput() { return intsToInput("axes", 1); }

  Status intsToInput(const char* name, std::size_t input) {
    if (!attrs().has(name)) return {};
    setInput(input, ints(name, attrs().integers(name)));
    eraseAttribute(name);
    return {};
  }

  Status split13() { return intsToInput("split", 1); }

  Status split18() {
    if (!node().input(1) && !attrs().has("num_outputs"))
      setAttribute("num_outputs", static_cast<std::int64_t>(node().outputs.size()));
    return {};
  }

  Status slice() {
    if (!attrs().has("starts") || !attrs().has("ends"))
      return error("no starts or ends; Slice before opset 10 has both as attributes");
    SS_TRY(intsToInput("starts", 1));
    SS_TRY(intsToInput("ends", 2));
    return intsToInput("axes", 3);
  }

  // A float attribute that became an input of the type of input 0, which is not inferred yet.
  ValueId likeInput0(const char* name, float value) { return emit("CastLike", {floatScalar(name, value), node().input(0)}); }

  Status pad() {
    if (!attrs().has("pads")) return error("no pads; Pad before opset 11 has them as an attribute");
    SS_TRY(intsToInput("pads", 1));
    if (const float value = attrs().real("value", 0); value != 0) setInput(2, likeInput0("value", value));
    eraseAttribute("value");
    return {};
  }

  Status clip() {
    // The defaults were the limits of float32; no bound says the same.
    const float lowest = std::numeric_limits<float>::lowest(), highest = std::numeric_limits<float>::max();
    if (const float low = attrs().real("min", lowest); low != lowest) setInput(1, likeInput0("min", low));
    if (const float high = attrs().real("max", highest); high != highest) setInput(2, likeInput0("max", high));
    eraseAttribute("min");
    eraseAttribute("max");
    return {};
  }

  Status dropout() {
    eraseAttribute("ratio");
    graph_.logChange(node_);
    warn("before opset 12 Dropout is in test mode and hands its input on; export with opset 12 or later to train with it");
    return {};
  }

  Status topK() {
    if (!attrs().has("k")) return error("no k; TopK before opset 10 has it as an attribute");
    setInput(1, ints("k", {attrs().integer("k", 0)}));
    eraseAttribute("k");
    return {};
  }

  Status upsample() {
    ValueId scales = node().input(1);
    if (const AttrValue* values = attrs().find("scales")) {
      const auto* list = std::get_if<std::vector<float>>(values);
      if (list == nullptr) return error("scales is no list of floats");
      scales =
          constant("scales", Tensor::of<float>({static_cast<std::int64_t>(list->size())}, std::span<const float>(*list)));
      eraseAttribute("scales");
    }
    if (!scales) return error("no scales");
    rename("Resize");
    const ValueId x = node().input(0);
    graph_.mutableNode(node_).inputs = {x, {}, scales};
    return oldCoordinates();
  }

  Status resize10() {
    const ValueId x = node().input(0), scales = node().input(1);
    graph_.mutableNode(node_).inputs = {x, {}, scales};
    return oldCoordinates();
  }

  Status oldCoordinates() {
    if (attrs().text("mode", "nearest") == "bilinear") setAttribute("mode", std::string("linear"));
    setAttribute("coordinate_transformation_mode", std::string("asymmetric"));
    setAttribute("nearest_mode", std::string("floor"));
    return {};
  }

  // Opset 11 wanted `scales` even where `sizes` decides: an empty tensor.
  Status resize13() {
    if (version_ >= 11 && node().input(3) && node().input(2)) setInput(2, {});
    return {};
  }

  // Until opset 12 the input was seen as a matrix: axes before `axis` by axes from it on.
  Status softmax() {
    const std::int64_t axis = attrs().integer("axis", 1);
    const auto& shape = graph_.value(node().input(0)).type.shape;
    const bool last = axis == -1 || (shape && axis == static_cast<std::int64_t>(shape->size()) - 1);
    if (last || !node().input(0)) {
      setAttribute("axis", std::int64_t{-1});
      return {};
    }
    const ValueId x = node().input(0);
    const ValueId extents = emit("Shape", {x});
    setInput(0, emit("Flatten", {x}, {{"axis", axis}}));
    setAttribute("axis", std::int64_t{-1});
    finishWith("Reshape", {extents}, {{"allowzero", std::int64_t{1}}});
    return {};
  }

  Status batchNormalization() {
    if (attrs().integer("spatial", 1) == 0)
      return error("spatial=0 has statistics per element; from opset 9 on there are only those per channel");
    eraseAttribute("spatial");
    const bool training = std::any_of(node().outputs.begin() + std::min<std::ptrdiff_t>(1, std::ssize(node().outputs)),
                                      node().outputs.end(), [](ValueId out) { return out.valid(); });
    if (!training) return {};
    if (!uses_) uses_ = graph_.uses();
    while (node().outputs.size() > 3) {
      const ValueId saved = node().outputs.back();
      const auto& results = graph_.outputs();
      if (saved && (!uses_->of(saved).empty() || std::find(results.begin(), results.end(), saved) != results.end()))
        return error("output '" + graph_.value(saved).name + "' (saved statistics) is used; opset 14 removed it");
      if (saved) graph_.removeValue(saved);
      graph_.mutableNode(node_).outputs.pop_back();
    }
    setAttribute("training_mode", std::int64_t{1});
    return {};
  }

  // Opset 21 wants scale and bias per channel; 18 had them per group.
  Status groupNormalization() {
    const std::int64_t groups = attrs().integer("num_groups", 0);
    if (groups < 1) return error("num_groups " + std::to_string(groups) + "; expected a number from 1");
    const ValueId channels = emit("Shape", {node().input(0)}, {{"start", std::int64_t{1}}, {"end", std::int64_t{2}}});
    const ValueId perGroup = emit("Div", {channels, ints("groups", {groups})});
    const ValueId target = emit("Concat", {ints("one", {1}), perGroup}, {{"axis", std::int64_t{0}}});
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
      const ValueId column = emit("Unsqueeze", {node().input(i), ints("axis", {1})});
      setInput(i, emit("Reshape", {emit("Expand", {column, target}), ints("vector", {-1})}));
    }
    return {};
  }

  Status scatter() {
    rename("ScatterElements");
    return {};
  }

  // Until opset 10 negative indices matched nothing; later they count from depth. Depth itself matches nothing either.
  Status oneHot() {
    const ValueId indices = node().input(0);
    const ValueId depth = emit("CastLike", {emit("Reshape", {node().input(1), ints("scalar", {})}), indices});
    const ValueId negative =
        emit("Less", {indices, emit("CastLike", {constant("zero", Tensor::scalar(DType::kI64, 0)), indices})});
    setInput(0, emit("Where", {negative, depth, indices}));
    return {};
  }

  Status gridSample() {
    const std::string mode = attrs().text("mode", "bilinear");
    if (mode == "bilinear") setAttribute("mode", std::string("linear"));
    if (mode == "bicubic") setAttribute("mode", std::string("cubic"));
    return {};
  }

  Status scan() {
    return error("Scan of opset 8, over a batch; expected opset 9 or later; hint: export again with another opset_version");
  }

  // Until opset 15 regions lay half an element further.
  Status roiAlign() {
    setAttribute("coordinate_transformation_mode", std::string("output_half_pixel"));
    return {};
  }

  Status dft() {
    setInput(2, constant("axis", Tensor::scalar(DType::kI64, static_cast<double>(attrs().integer("axis", 1)))));
    eraseAttribute("axis");
    return {};
  }

  // --- rules for newer nodes

  // x · sigmoid(alpha · x)
  ValueId swishOf(ValueId x) {
    const float alpha = attrs().real("alpha", 1);
    const ValueId scaled = alpha == 1 ? x : emit("Mul", {x, likeInput0("alpha", alpha)});
    return emit("Sigmoid", {scaled});
  }

  Status swish() {
    const ValueId x = node().input(0);
    return becomeProduct({x, swishOf(x)});
  }

  Status swiGlu() {
    const ValueId gate = node().input(0);
    return becomeProduct({emit("Mul", {gate, swishOf(gate)}), node().input(1)});
  }

  Status becomeProduct(std::vector<ValueId> factors) {
    rename("Mul");
    graph_.mutableNode(node_).inputs = std::move(factors);
    eraseAttribute("alpha");
    return {};
  }

  Status ignoreRounding() {
    eraseAttribute("round_mode");
    return {};
  }

  Status ignoreStash() {
    eraseAttribute("stash_type");
    return {};
  }

  // The precision of the division; what is quantised is f32 here.
  Status quantize() {
    if (const std::int64_t precision = attrs().integer("precision", 0); precision != 0 && precision != 1)
      return error(fmt::format("precision {}; expected 1 (float)", precision));
    eraseAttribute("precision");
    return {};
  }

  Status dequantize() {
    const std::int64_t type = attrs().integer("output_dtype", 0);
    eraseAttribute("output_dtype");
    if (type != 0) finishWith("Cast", {}, {{"to", type}});
    return {};
  }

  // By columns (CRD) the channel of the operand counts slowest in that of the result, by depth (DCR) fastest.
  Status spaceToDepth() {
    const std::string mode = attrs().text("mode", "DCR");
    if (mode != "DCR" && mode != "CRD") return error("mode '" + mode + "'; expected DCR or CRD");
    eraseAttribute("mode");
    if (mode == "DCR") return {};
    const std::int64_t block = attrs().integer("blocksize", 0);
    const ValueId channels = emit("Shape", {node().input(0)}, {{"start", std::int64_t{1}}, {"end", std::int64_t{2}}});
    const ValueId count = emit("Reshape", {emit("Mul", {channels, ints("block", {block * block})}), ints("scalar", {})});
    const ValueId zero = constant("zero", Tensor::scalar(DType::kI64, 0)),
                  one = constant("one", Tensor::scalar(DType::kI64, 1));
    const ValueId rows = emit("Reshape", {emit("Range", {zero, count, one}), ints("rows", {block * block, -1})});
    const ValueId order =
        emit("Reshape", {emit("Transpose", {rows}, {{"perm", std::vector<std::int64_t>{1, 0}}}), ints("vector", {-1})});
    finishWith("Gather", {order}, {{"axis", std::int64_t{1}}});
    return {};
  }

  // In the order of application; each entry is for nodes older than the opset that changed the form.
  static std::span<const Entry> rules();
  // For nodes of newer opsets than the internal one.
  static std::span<const NewerEntry> newerRules();

  Graph& graph_;
  int fromOpset_;
  std::vector<std::string>& warnings_;
  NodeId node_;
  int version_ = 0;
  std::vector<NodeId> before_, after_;
  std::size_t raised_ = 0;
  std::optional<UseTable> uses_;  // of what the file has; made once it is asked for
};

std::span<const Raiser::Entry> Raiser::rules() {
  static constexpr Entry kRules[] = {
      {"BatchNormalization", 14, &Raiser::batchNormalization},
      {"Clip", 11, &Raiser::clip},
      {"DFT", 20, &Raiser::dft},
      {"Dropout", 12, &Raiser::dropout},
      {"GridSample", 20, &Raiser::gridSample},
      {"GroupNormalization", 21, &Raiser::groupNormalization},
      {"Hardmax", 13, &Raiser::softmax},
      {"LogSoftmax", 13, &Raiser::softmax},
      {"OneHot", 11, &Raiser::oneHot},
      {"Pad", 11, &Raiser::pad},
      {"ReduceL1", 18, &Raiser::axesToInput},
      {"ReduceL2", 18, &Raiser::axesToInput},
      {"ReduceLogSum", 18, &Raiser::axesToInput},
      {"ReduceLogSumExp", 18, &Raiser::axesToInput},
      {"ReduceMax", 18, &Raiser::axesToInput},
      {"ReduceMean", 18, &Raiser::axesToInput},
      {"ReduceMin", 18, &Raiser::axesToInput},
      {"ReduceProd", 18, &Raiser::axesToInput},
      {"ReduceSum", 13, &Raiser::axesToInput},
      {"ReduceSumSquare", 18, &Raiser::axesToInput},
      {"Resize", 11, &Raiser::resize10},
      {"Resize", 13, &Raiser::resize13},
      {"RoiAlign", 16, &Raiser::roiAlign},
      {"Scan", 9, &Raiser::scan},
      {"Scatter", 11, &Raiser::scatter},
      {"Slice", 10, &Raiser::slice},
      {"Softmax", 13, &Raiser::softmax},
      {"Split", 13, &Raiser::split13},
      {"Split", 18, &Raiser::split18},
      {"Squeeze", 13, &Raiser::axesToInput},
      {"TopK", 10, &Raiser::topK},
      {"Unsqueeze", 13, &Raiser::axesToInput},
      {"Upsample", 10, &Raiser::upsample},
  };
  return kRules;
}

std::span<const Raiser::NewerEntry> Raiser::newerRules() {
  static constexpr NewerEntry kRules[] = {
      {"Cast", &Raiser::ignoreRounding},
      {"CastLike", &Raiser::ignoreRounding},
      {"DequantizeLinear", &Raiser::dequantize},
      {"QuantizeLinear", &Raiser::quantize},
      {"Range", &Raiser::ignoreStash},
      {"SpaceToDepth", &Raiser::spaceToDepth},
      {"SwiGLU", &Raiser::swiGlu},
      {"Swish", &Raiser::swish},
  };
  return kRules;
}

}  // namespace

Status raiseOpset(Graph& graph, PassContext& context) {
  SS_ASSIGN(context.result.matches, Raiser(graph, context.opset, context.result.warnings).run());
  return {};
}

}  // namespace stepscope

#include "engine/passes/raise_early.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/passes/node_raiser.h"

namespace stepscope {
namespace {

constexpr int kRaised = 7;  // the form that the rules write

class Early : NodeRaiser {
 public:
  Early(Graph& graph, int fromOpset) : NodeRaiser(graph), fromOpset_(fromOpset) {}

  Result<std::size_t> run() {
    return walk([this] { return raise(); }, [this](Graph& body) { return Early(body, fromOpset_).run(); });
  }

 private:
  struct Entry {
    std::string_view op;
    int below;  // the rule is for nodes of an older opset than this
    Status (Early::*rule)();
  };

  Result<bool> raise() {
    if (!node().domain.empty()) return false;
    version_ = node().sinceVersion > 0 ? node().sinceVersion : fromOpset_;
    if (version_ >= kRaised) return false;
    const std::uint64_t before = graph_.version();
    eraseAttribute("consumed_inputs");
    becomes_ = kRaised;
    for (const Entry& entry : rules())
      if (entry.op == node().op && version_ < entry.below) SS_TRY((this->*entry.rule)());
    const bool rewritten = graph_.version() != before;
    graph_.mutableNode(node_).sinceVersion = becomes_;
    return rewritten;
  }

  // --- rules

  Status aligned() {
    const bool broadcast = node().attrs.integer("broadcast", 0) != 0;
    if (broadcast && node().attrs.has("axis")) align(1, node().attrs.integer("axis", 0));
    eraseAttribute("broadcast");
    eraseAttribute("axis");
    return {};
  }

  // One number, or one for each channel.
  Status slope() {
    align(1, 1);
    return {};
  }

  // Operand `input` gets as many extents of 1 behind its own as operand 0 has axes behind those from `axis` on that it
  // names.
  void align(std::size_t input, std::int64_t axis) {
    const ValueId x = node().input(0), y = node().input(input);
    const auto &wide = graph_.value(x).type.shape, &narrow = graph_.value(y).type.shape;
    if (narrow && narrow->empty()) return;
    if (wide && narrow) {
      const auto rank = static_cast<std::int64_t>(wide->size()), own = static_cast<std::int64_t>(narrow->size());
      const std::int64_t behind = rank - (axis < 0 ? axis + rank : axis) - own;
      if (behind <= 0) return;
      std::vector<std::int64_t> axes;
      for (std::int64_t i = 0; i < behind; ++i) axes.push_back(own + i);
      graph_.setInput(node_, input, emit("Unsqueeze", {y, ints("axes", axes)}));
      return;
    }
    const ValueId rank = emit("Shape", {emit("Shape", {x})}), own = emit("Shape", {emit("Shape", {y})});
    const ValueId start = axis < 0 ? emit("Add", {rank, ints("axis", {axis})}) : ints("axis", {axis});
    const ValueId behind = emit("Max", {emit("Sub", {emit("Sub", {rank, start}), own}), ints("none", {0})});
    const ValueId ones = emit("Expand", {ints("one", {1}), behind});
    const ValueId extents = emit("Concat", {emit("Shape", {y}), ones}, {{"axis", std::int64_t{0}}});
    graph_.setInput(node_, input, emit("Reshape", {y, extents}, {{"allowzero", std::int64_t{1}}}));
  }

  Status gemm() {
    eraseAttribute("broadcast");
    return {};
  }

  // Whether it trains is told by its further outputs, as in opset 7.
  Status batchNormalization() {
    if (node().attrs.integer("is_test", 0) != 0 && node().outputs.size() > 1)
      return error("is_test=1 with running statistics as outputs; expected one output");
    eraseAttribute("is_test");
    return {};
  }

  Status dropout() {
    const bool trains = node().attrs.integer("is_test", 0) == 0;
    eraseAttribute("is_test");
    if (!trains) return {};
    if (node().output(1) && isRead(node().output(1)))
      return error("its mask is read; before opset 7 it holds numbers; expected output 0 alone");
    if (node().outputs.size() > 1) {
      if (node().output(1)) graph_.removeValue(node().output(1));
      graph_.mutableNode(node_).outputs.resize(1);
    }
    const float ratio = node().attrs.real("ratio", 0.5F);
    eraseAttribute("ratio");
    graph_.setInput(node_, 1, scalar("ratio", DType::kF32, ratio));
    graph_.setInput(node_, 2, scalar("training", DType::kBool, 1));
    becomes_ = 12;
    return {};
  }

  Status reshape() {
    if (!node().attrs.has("shape")) return error("no shape; Reshape before opset 5 has it as an attribute");
    graph_.setInput(node_, 1, ints("shape", node().attrs.integers("shape")));
    eraseAttribute("shape");
    return {};
  }

  // Operands were how often, and along which axis.
  Status tile() {
    const ValueId x = node().input(0);
    const auto vector = [&](std::size_t i) {
      return emit("Cast", {emit("Reshape", {node().input(i), ints("vector", {1})})}, {{"to", std::int64_t{7}}});
    };
    const ValueId often = vector(1), axis = vector(2);
    const ValueId once = emit("Expand", {ints("one", {1}), emit("Shape", {emit("Shape", {x})})});
    const ValueId repeats = emit("ScatterElements", {once, axis, often}, {{"axis", std::int64_t{0}}});
    graph_.mutableNode(node_).inputs = {x, repeats};
    graph_.logChange(node_);
    return {};
  }

  Status cast() {
    static constexpr std::array<std::pair<std::string_view, std::int64_t>, 13> kTypes{{{"FLOAT", 1},
                                                                                       {"UINT8", 2},
                                                                                       {"INT8", 3},
                                                                                       {"UINT16", 4},
                                                                                       {"INT16", 5},
                                                                                       {"INT32", 6},
                                                                                       {"INT64", 7},
                                                                                       {"STRING", 8},
                                                                                       {"BOOL", 9},
                                                                                       {"FLOAT16", 10},
                                                                                       {"DOUBLE", 11},
                                                                                       {"UINT32", 12},
                                                                                       {"UINT64", 13}}};
    const std::string name = node().attrs.text("to", "");
    const auto* type = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& entry) { return entry.first == name; });
    if (type == kTypes.end()) return error("type '" + name + "' of attribute to; expected FLOAT, INT64, BOOL …");
    setAttribute("to", type->second);
    return {};
  }

  Status concat() {
    if (!node().attrs.has("axis")) setAttribute("axis", std::int64_t{1});
    return {};
  }

  Status split() {
    if (!node().attrs.has("axis")) setAttribute("axis", std::int64_t{0});
    return {};
  }

  Status pad() {
    if (!node().attrs.has("paddings")) return error("no paddings; Pad of opset 1 has them as an attribute");
    const std::vector<std::int64_t> pads = node().attrs.integers("paddings");
    eraseAttribute("paddings");
    setAttribute("pads", pads);
    return {};
  }

  Status upsample() {
    if (!node().attrs.has("height_scale") || !node().attrs.has("width_scale"))
      return error("no height_scale or width_scale; Upsample before opset 7 has both as attributes");
    const std::vector<float> scales{1, 1, node().attrs.real("height_scale", 1), node().attrs.real("width_scale", 1)};
    eraseAttribute("height_scale");
    eraseAttribute("width_scale");
    setAttribute("scales", scales);
    return {};
  }

  Status norm() {
    const float p = node().attrs.real("p", 2);
    if (p != static_cast<float>(static_cast<std::int64_t>(p))) return error(fmt::format("p {}; expected a whole number", p));
    setAttribute("p", static_cast<std::int64_t>(p));
    return {};
  }

  Status recurrent() {
    eraseAttribute("output_sequence");
    return {};
  }

  ValueId scalar(const char* name, DType type, double value) {
    return graph_.addConstant(node().name + "/" + name, Tensor::scalar(type, value));
  }

  static std::span<const Entry> rules() {
    static constexpr Entry kRules[] = {
        {"Add", 7, &Early::aligned},
        {"And", 7, &Early::aligned},
        {"BatchNormalization", 7, &Early::batchNormalization},
        {"Cast", 6, &Early::cast},
        {"Concat", 4, &Early::concat},
        {"Div", 7, &Early::aligned},
        {"Dropout", 7, &Early::dropout},
        {"Equal", 7, &Early::aligned},
        {"GRU", 7, &Early::recurrent},
        {"Gemm", 7, &Early::gemm},
        {"GlobalLpPool", 2, &Early::norm},
        {"Greater", 7, &Early::aligned},
        {"LSTM", 7, &Early::recurrent},
        {"Less", 7, &Early::aligned},
        {"LpPool", 2, &Early::norm},
        {"Mul", 7, &Early::aligned},
        {"Or", 7, &Early::aligned},
        {"PRelu", 7, &Early::slope},
        {"Pad", 2, &Early::pad},
        {"Pow", 7, &Early::aligned},
        {"RNN", 7, &Early::recurrent},
        {"Reshape", 5, &Early::reshape},
        {"Split", 2, &Early::split},
        {"Sub", 7, &Early::aligned},
        {"Tile", 6, &Early::tile},
        {"Upsample", 7, &Early::upsample},
        {"Xor", 7, &Early::aligned},
    };
    return kRules;
  }

  int fromOpset_, version_ = 0, becomes_ = kRaised;
};

}  // namespace

Status raiseEarly(Graph& graph, PassContext& context) {
  SS_ASSIGN(context.result.matches, Early(graph, context.opset).run());
  return {};
}

}  // namespace stepscope

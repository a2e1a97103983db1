#include "engine/passes/raise_microsoft.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "engine/passes/beside.h"
#include "engine/passes/microsoft_attention.h"

namespace stepscope {
namespace {

class Raiser : AttentionRaiser {
 public:
  explicit Raiser(Graph& graph) : AttentionRaiser(graph) {}

  Result<std::size_t> run() {
    return walk([this] { return raise(); }, [](Graph& body) { return Raiser(body).run(); });
  }

 private:
  struct Entry {
    std::string_view op;
    Status (Raiser::*rule)();
  };

  Result<bool> raise() {
    if (node().domain != "com.microsoft") return false;
    static constexpr std::array kRules{
        Entry{"Attention", &Raiser::attention},
        Entry{"BatchNormInternal", &Raiser::batchNormInternal},
        Entry{"BiasDropout", &Raiser::biasDropout},
        Entry{"EmbedLayerNormalization", &Raiser::embedLayerNormalization},
        Entry{"FusedConv", &Raiser::fusedConv},
        Entry{"FusedGemm", &Raiser::fusedGemm},
        Entry{"GRUTraining", &Raiser::gruTraining},
        Entry{"GridSample", &Raiser::gridSample},
        Entry{"GroupQueryAttention", &Raiser::groupQueryAttention},
        Entry{"LSTMTraining", &Raiser::lstmTraining},
        Entry{"MultiHeadAttention", &Raiser::multiHeadAttention},
        Entry{"NhwcConv", &Raiser::nhwcConv},
        Entry{"ReduceSumTraining", &Raiser::reduceSumTraining},
        Entry{"RotaryEmbedding", &Raiser::rotaryEmbedding},
        Entry{"Scale", &Raiser::scale},
        Entry{"ScaledSum", &Raiser::scaledSum},
        Entry{"TransposeMatMul", &Raiser::transposeMatMul},
        Entry{"Trilu", &Raiser::trilu},
    };
    for (const Entry& entry : kRules) {
      if (entry.op != node().op) continue;
      SS_TRY((this->*entry.rule)());
      return true;
    }
    return false;
  }

  // --- what ONNX Runtime's optimiser writes for inference

  // Relu, Tanh …, and the numbers that belong to it.
  Status activation(const std::vector<float>& numbers) {
    const std::string name = node().attrs.text("activation", "");
    const auto at = [&](std::size_t i, float otherwise) { return i < numbers.size() ? numbers[i] : otherwise; };
    eraseAttribute("activation");
    if (name.empty()) return {};
    if (name == "Clip") {
      const ValueId like = node().input(0);
      behind("Clip", {factor("low", at(0, std::numeric_limits<float>::lowest()), like),
                      factor("high", at(1, std::numeric_limits<float>::max()), like)});
    } else if (name == "LeakyRelu") {
      behind("LeakyRelu", {}, {{"alpha", at(0, 0.01f)}});
    } else if (name == "HardSigmoid") {
      behind("HardSigmoid", {}, {{"alpha", at(0, 0.2f)}, {"beta", at(1, 0.5f)}});
    } else if (name == "Relu" || name == "Sigmoid" || name == "Tanh" || name == "HardSwish") {
      behind(name.c_str(), {});
    } else {
      return error("activation '" + name + "'; expected Relu, Tanh, Sigmoid, LeakyRelu, HardSigmoid, HardSwish or Clip");
    }
    return {};
  }

  Status fusedGemm() {
    const std::vector<float> numbers{node().attrs.real("activation_alpha", 0), node().attrs.real("activation_beta", 0)};
    const bool given = node().attrs.has("activation_alpha");
    for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"}) eraseAttribute(name);
    SS_TRY(activation(given ? numbers : std::vector<float>{}));
    return become("Gemm", 13);
  }

  // x, w, bias?, z? → activation(conv + z)
  Status fusedConv() {
    const ValueId z = node().input(3);
    const std::vector<float> numbers = node().attrs.reals("activation_params");
    eraseAttribute("activation_params");
    Few<ValueId>& inputs = graph_.mutableNode(node_).inputs;
    inputs.resize(std::min<std::size_t>(inputs.size(), 3));
    SS_TRY(activation(numbers));
    if (z) behind("Add", {z});
    return become("Conv", 11);
  }

  Status nhwcConv() {
    const std::size_t axes = node().attrs.has("kernel_shape") ? node().attrs.integers("kernel_shape").size() : 2;
    std::vector<std::int64_t> in{0, static_cast<std::int64_t>(axes) + 1}, out{0};
    for (std::size_t axis = 1; axis <= axes; ++axis) {
      in.push_back(static_cast<std::int64_t>(axis));
      out.push_back(static_cast<std::int64_t>(axis) + 1);
    }
    out.push_back(1);
    graph_.setInput(node_, 0, emit("Transpose", {node().input(0)}, {{"perm", in}}));
    behind("Transpose", {}, {{"perm", out}});
    return become("Conv", 11);
  }

  // ids, segments?, words, positions, segment table?, gamma, beta, mask?, position ids? → result, mask index?, sum?
  Status embedLayerNormalization() {
    if (const ValueId index = node().output(1)) {
      if (isRead(index))
        return error("output '" + graph_.value(index).name +
                     "' (lengths of the rows) is used; expected attention with a mask");
      graph_.removeValue(index);
    }
    const std::vector<ValueId> inputs = node().inputs;
    const auto input = [&](std::size_t i) { return i < inputs.size() ? inputs[i] : ValueId{}; };
    ValueId sum = emit("Gather", {input(2), input(0)});
    if (input(8)) {
      sum = emit("Add", {sum, emit("Gather", {input(3), input(8)})});
    } else {
      const ValueId length = emit("Shape", {input(0)}, {{"start", std::int64_t{1}}, {"end", std::int64_t{2}}});
      const ValueId zero = ints("from", {0});
      sum = emit("Add", {sum, emit("Slice", {input(3), zero, length, zero})});
    }
    if (input(1) && input(4)) sum = emit("Add", {sum, emit("Gather", {input(4), input(1)})});
    const ValueId all = node().output(2);
    if (all) {
      const NodeId handed = addBeside(graph_, node_, "Identity", {sum}, {});
      takeOver(graph_, handed, all, "sum");
      after_.push_back(handed);
    }
    Node& changed = graph_.mutableNode(node_);
    changed.inputs = {sum, input(5), input(6)};
    changed.outputs.resize(1);
    if (!changed.attrs.has("epsilon")) setAttribute("epsilon", 1e-12f);
    eraseAttribute("mask_index_type");
    return become("LayerNormalization", 17);
  }

  Status trilu() { return become("Trilu", 14); }
  Status gridSample() { return become("GridSample", 16); }
  Status reduceSumTraining() { return become("ReduceSum", 13); }

  Status transposeMatMul() {
    graph_.mutableNode(node_).op = "FusedMatMul";
    graph_.logChange(node_);
    return {};
  }

  // Statistics of the batch always; the saved ones leave with the gradient that read them.
  Status batchNormInternal() {
    while (node().outputs.size() > 3) {
      const ValueId saved = node().outputs.back();
      if (saved && isRead(saved))
        return error("output '" + graph_.value(saved).name +
                     "' (saved statistics) is used; expected a graph saved before its gradient was built");
      if (saved) graph_.removeValue(saved);
      graph_.mutableNode(node_).outputs.pop_back();
    }
    setAttribute("training_mode", std::int64_t{1});
    return become("BatchNormalization", 15);
  }

  // What the step keeps for its gradient: ours has the direction before the time. Results that nobody reads go.
  Status recurrent(const char* op, std::size_t results, const std::vector<std::size_t>& kept) {
    std::vector<std::pair<ValueId, std::size_t>> read;  // what is handed out, and the output of our op that has it
    for (std::size_t k = 0; k < kept.size(); ++k) {
      const ValueId out = node().output(results + k);
      if (!out) continue;
      if (isRead(out))
        read.emplace_back(out, kept[k]);
      else
        graph_.removeValue(out);
    }
    for (const auto& [out, place] : read) {
      const NodeId turned = addBeside(graph_, node_, "Transpose", {}, {}, {{"perm", std::vector<std::int64_t>{1, 0, 2, 3}}});
      graph_.moveOutput(out, turned, 0);
      after_.push_back(turned);
    }
    graph_.mutableNode(node_).outputs.resize(std::min(node().outputs.size(), results));
    for (std::size_t k = 0; k < read.size(); ++k)
      graph_.mutableNode(after_[k]).inputs = {
          graph_.addOutput(node_, graph_.value(read[k].first).name + "_by_direction", read[k].second)};
    return become(op, 14);
  }
  // y, last h, last c, cells, gates
  Status lstmTraining() { return recurrent("LSTM", 3, {4, 3}); }
  // y, last h, gates
  Status gruTraining() { return recurrent("GRU", 2, {2}); }

  // dropout(x + bias, ratio, training) + residual
  Status biasDropout() {
    const ValueId x = node().input(0), bias = node().input(1), residual = node().input(2), ratio = node().input(3),
                  training = node().input(4);
    const ValueId biased = emit("Add", {x, bias});
    graph_.mutableNode(node_).inputs = {biased, ratio, training};
    SS_TRY(become("Dropout", 13));
    if (!residual || !node().output(0)) return {};
    const ValueId result = node().output(0);
    const NodeId last = addBeside(graph_, node_, "Add", {}, {});
    after_.push_back(last);
    const ValueId dropped = takeOver(graph_, last, result, "dropped");
    graph_.mutableNode(last).inputs = {dropped, residual};
    return {};
  }

  Status scale() {
    const bool down = node().attrs.integer("scale_down", 0) != 0;
    eraseAttribute("scale_down");
    const ValueId by = emit("CastLike", {node().input(1), node().input(0)});
    graph_.setInput(node_, 1, by);
    return become(down ? "Div" : "Mul", 14);
  }

  Status scaledSum() {
    std::vector<ValueId> terms;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::string name = "scale_" + std::to_string(i);
      if (const ValueId x = node().input(i))
        terms.push_back(emit("Mul", {x, factor(name.c_str(), node().attrs.real(name, 1.0f), x)}));
    }
    for (const char* name : {"scale_0", "scale_1", "scale_2"}) eraseAttribute(name);
    graph_.mutableNode(node_).inputs = std::move(terms);
    return become("Sum", 13);
  }
};

}  // namespace

Status raiseMicrosoft(Graph& graph, PassContext& context) {
  SS_ASSIGN(context.result.matches, Raiser(graph).run());
  return {};
}

}  // namespace stepscope

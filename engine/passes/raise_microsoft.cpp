#include "engine/passes/raise_microsoft.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/ops/op_def.h"
#include "engine/passes/beside.h"

namespace stepscope {
namespace {

class Raiser {
 public:
  explicit Raiser(Graph& graph) : graph_(graph) {}

  Result<std::size_t> run() {
    std::vector<NodeId> order;
    for (const NodeId id : std::vector<NodeId>(graph_.order())) {
      before_.clear();
      after_.clear();
      SS_TRY(raiseSubgraphs(id));
      node_ = id;
      if (node().domain == "com.microsoft") SS_TRY(raise());
      order.insert(order.end(), before_.begin(), before_.end());
      order.push_back(id);
      order.insert(order.end(), after_.begin(), after_.end());
    }
    if (order != graph_.order()) graph_.setOrder(std::move(order));
    return raised_;
  }

 private:
  struct Entry {
    std::string_view op;
    Status (Raiser::*rule)();
  };

  Status raiseSubgraphs(NodeId id) {
    if (graph_.node(id).subgraphs.empty()) return {};
    for (auto& [name, subgraph] : graph_.mutableNode(id).subgraphs) {
      if (!subgraph) continue;
      auto copy = std::make_shared<Graph>(*subgraph);
      copy->setPass(graph_.pass());
      SS_ASSIGN(const std::size_t raised, Raiser(*copy).run());
      if (raised == 0) continue;
      subgraph = std::move(copy);
      graph_.logChange(id);
      raised_ += raised;
    }
    return {};
  }

  Status raise() {
    static constexpr std::array kRules{
        Entry{"BatchNormInternal", &Raiser::batchNormInternal},
        Entry{"BiasDropout", &Raiser::biasDropout},
        Entry{"GridSample", &Raiser::gridSample},
        Entry{"ReduceSumTraining", &Raiser::reduceSumTraining},
        Entry{"Scale", &Raiser::scale},
        Entry{"ScaledSum", &Raiser::scaledSum},
        Entry{"TransposeMatMul", &Raiser::transposeMatMul},
        Entry{"Trilu", &Raiser::trilu},
    };
    for (const Entry& entry : kRules) {
      if (entry.op != node().op) continue;
      ++raised_;
      return (this->*entry.rule)();
    }
    return {};
  }

  const Node& node() const { return graph_.node(node_); }
  tl::unexpected<Error> error(std::string message) const { return unsupported(node().label() + ": " + std::move(message)); }

  // The node from here on is `op` of ONNX, in the form of `opset`.
  Status become(const char* op, int opset) {
    Node& changed = graph_.mutableNode(node_);
    changed.domain.clear();
    changed.op = op;
    changed.sinceVersion = opset;
    graph_.logChange(node_);
    return {};
  }
  void setAttribute(const char* name, AttrValue value) { graph_.mutableNode(node_).attrs.set(name, std::move(value)); }
  void eraseAttribute(std::string_view name) {
    if (node().attrs.has(name)) graph_.mutableNode(node_).attrs.erase(name);
  }

  ValueId emit(const char* op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    const ValueId result = emitBeside(graph_, node_, op, std::move(inputs), std::move(attributes));
    before_.push_back(graph_.value(result).producer);
    return result;
  }
  // A factor in the type of `like`, which is not inferred yet.
  ValueId factor(const char* name, float value, ValueId like) {
    return emit("CastLike", {graph_.addConstant(node().name + "/" + name, Tensor::scalar(DType::kF32, value)), like});
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
    if (!uses_) uses_ = graph_.uses();
    while (node().outputs.size() > 3) {
      const ValueId saved = node().outputs.back();
      const bool result =
          saved && std::find(graph_.outputs().begin(), graph_.outputs().end(), saved) != graph_.outputs().end();
      if (saved && (result || !uses_->of(saved).empty()))
        return error("output '" + graph_.value(saved).name +
                     "' (saved statistics) is used; expected a graph saved before its gradient was built");
      if (saved) graph_.removeValue(saved);
      graph_.mutableNode(node_).outputs.pop_back();
    }
    setAttribute("training_mode", std::int64_t{1});
    return become("BatchNormalization", 15);
  }

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

  Graph& graph_;
  NodeId node_;
  std::vector<NodeId> before_, after_;
  std::size_t raised_ = 0;
  std::optional<UseTable> uses_;  // of what the file has; made once it is asked for
};

}  // namespace

Status raiseMicrosoft(Graph& graph, PassContext& context) {
  SS_ASSIGN(context.result.matches, Raiser(graph).run());
  return {};
}

}  // namespace stepscope

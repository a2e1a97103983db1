// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/views_drawing/generated_graph.h"

#include <algorithm>
#include <map>
#include <string>

namespace stepscope::generated {
namespace {

using snapshot::Graph;
using snapshot::Node;
using snapshot::Value;

constexpr std::int64_t kBatch = 2, kSequence = 128, kWidth = 192, kVocabulary = 8192;

const std::map<std::string, std::string>& categories() {
  static const std::map<std::string, std::string> kMap{{"MatMul", "matmul"},
                                                       {"LayerNormalization", "normalization"},
                                                       {"LayerNormalizationGrad", "normalization"},
                                                       {"Gelu", "activation"},
                                                       {"GeluGrad", "activation"},
                                                       {"BiasGelu", "activation"},
                                                       {"BiasGeluGrad", "activation"},
                                                       {"Softmax", "activation"},
                                                       {"SoftmaxGrad", "activation"},
                                                       {"Add", "elementwise"},
                                                       {"Mul", "elementwise"},
                                                       {"Where", "elementwise"},
                                                       {"Reshape", "movement"},
                                                       {"Transpose", "movement"},
                                                       {"Split", "movement"},
                                                       {"Concat", "movement"},
                                                       {"Gather", "movement"},
                                                       {"GatherGrad", "movement"},
                                                       {"ReduceSum", "reduction"},
                                                       {"SoftmaxCrossEntropyLoss", "loss"},
                                                       {"SoftmaxCrossEntropyLossGrad", "loss"},
                                                       {"AdamW", "optimizer"},
                                                       {"Constant", "other"},
                                                       {"Shape", "other"},
                                                       {"Dropout", "random"},
                                                       {"DropoutGrad", "random"},
                                                       {"Sqrt", "elementwise"}};
  return kMap;
}

class Builder {
 public:
  explicit Builder(const StepOptions& options) : options_(options) {}

  Graph build() {
    graph_.set_name("decoder");
    graph_.set_phase(options_.optimizer ? "optimizer" : options_.gradient ? "gradient" : options_.fused ? "fuse" : "infer");
    const int ids = input("input_ids", {"2", "128"}), labels = input("labels", {"2", "128"}),
              mask = input("attention_mask", {"2", "128"});
    path_ = "transformer.wte";
    int x = gather("wte.weight", ids);
    path_ = "transformer.wpe";
    const int shape = node("Shape", {ids}, {"2"});
    const int positions = node("Gather", {parameter("wpe.weight", {"128", "192"}), shape}, kHidden);
    path_ = "transformer";
    x = node("Add", {x, positions}, kHidden);
    x = node("Dropout", {x}, kHidden);
    for (int b = 0; b < options_.blocks; ++b) x = block(b, x, mask);
    path_ = "transformer.ln_f";
    x = norm("ln_f", x);
    path_ = "lm_head";
    const int logits = node("MatMul", {x, parameter("lm_head.weight", {"192", "8192"})}, {"2", "128", "8192"});
    path_ = "loss";
    loss_ = node("SoftmaxCrossEntropyLoss", {logits, labels}, {});
    graph_.set_loss(loss_);
    graph_.add_outputs(loss_);
    if (options_.gradient) gradient();
    if (options_.optimizer && options_.gradient) optimizer();
    return std::move(graph_);
  }

 private:
  using Dims = std::vector<std::string>;
  inline static const Dims kHidden{"2", "128", "192"}, kWide{"2", "128", "768"}, kHeads{"2", "6", "128", "32"},
      kScores{"2", "6", "128", "128"};

  int value(const std::string& name, const Dims& dims, snapshot::ValueRole role) {
    Value* v = graph_.add_values();
    v->set_id(nextValue_);
    v->set_name(name);
    v->set_dtype("float32");
    v->set_rank_known(true);
    std::int64_t bytes = 4;
    for (const std::string& d : dims) {
      v->add_dims(d);
      bytes *= std::stoll(d);
    }
    v->set_role(role);
    v->set_bytes(bytes);
    return nextValue_++;
  }
  int input(const std::string& name, const Dims& dims) {
    const int id = value(name, dims, snapshot::INPUT);
    graph_.add_inputs(id);
    return id;
  }
  int parameter(const std::string& name, const Dims& dims) {
    const int id = value(prefix_ + name, dims, snapshot::INITIALIZER);
    graph_.mutable_values(id)->set_trained(true);
    parameters_.push_back(id);
    return id;
  }
  int emit(const std::string& op, const std::vector<int>& inputs, const Dims& dims, snapshot::Phase phase, int forward,
           const std::string& name = {}) {
    Node* n = graph_.add_nodes();
    // Both graphs of a pass keep the ids of what they share.
    n->set_id(phase == snapshot::FORWARD ? nextNode_++ : 1'000'000 + nextNode_++);
    n->set_op(op);
    n->set_name(path_.empty() ? op : path_ + "/" + op);
    for (const int i : inputs) n->add_inputs(i);
    const int out = value(name.empty() ? n->name() + "_output_0" : name, dims, snapshot::NODE_OUTPUT);
    n->add_outputs(out);
    n->set_phase(phase);
    const auto category = categories().find(op);
    n->set_category(category == categories().end() ? "other" : category->second);
    n->set_random(op == "Dropout");
    auto* p = n->mutable_provenance();
    p->set_pass(phase == snapshot::FORWARD ? "import" : phase == snapshot::OPTIMIZER ? "optimizer" : "gradient");
    p->set_imported(phase == snapshot::FORWARD ? n->id() : forward);
    p->set_forward(forward);
    if (options_.modulePaths) p->set_module_path(path_);
    p->set_source_file("block.py");
    p->set_source_line(40 + graph_.nodes_size() % 60);
    producer_[out] = graph_.nodes_size() - 1;
    return out;
  }
  int node(const std::string& op, const std::vector<int>& inputs, const Dims& dims) {
    return emit(op, inputs, dims, snapshot::FORWARD, -1);
  }

  int gather(const std::string& name, int ids) { return node("Gather", {parameter(name, {"8192", "192"}), ids}, kHidden); }
  int norm(const std::string& name, int x) {
    return node("LayerNormalization", {x, parameter(name + ".weight", {"192"}), parameter(name + ".bias", {"192"})},
                kHidden);
  }
  int linear(const std::string& name, int x, const Dims& weight, const Dims& out) {
    const int product = node("MatMul", {x, parameter(name + ".weight", weight)}, out);
    return node("Add", {product, parameter(name + ".bias", {weight[1]})}, out);
  }

  int block(int number, int x, int mask) {
    const std::string block = "transformer.h." + std::to_string(number);
    prefix_ = "h." + std::to_string(number) + ".";
    path_ = block + ".ln_1";
    int y = norm("ln_1", x);
    path_ = block + ".attn.c_attn";
    y = linear("attn.c_attn", y, {"192", "576"}, {"2", "128", "576"});
    path_ = block + ".attn";
    const int split = node("Split", {y}, {"2", "128", "576"});
    int heads[3];
    for (int& head : heads) {
      const int shape = node("Constant", {}, {"4"});
      head = node("Transpose", {node("Reshape", {split, shape}, {"2", "128", "6", "32"})}, kHeads);
    }
    int scores = node("MatMul", {heads[0], heads[1]}, kScores);
    scores = node("Mul", {scores, node("Constant", {}, {})}, kScores);
    scores = node("Where", {mask, scores, node("Constant", {}, {})}, kScores);
    scores = node("Softmax", {scores}, kScores);
    y = node("MatMul", {scores, heads[2]}, kHeads);
    y = node("Transpose", {y}, {"2", "128", "6", "32"});
    y = node("Reshape", {y, node("Constant", {}, {"3"})}, kHidden);
    path_ = block + ".attn.c_proj";
    y = linear("attn.c_proj", y, {"192", "192"}, kHidden);
    path_ = block;
    x = node("Add", {x, y}, kHidden);
    path_ = block + ".ln_2";
    y = norm("ln_2", x);
    path_ = block + ".mlp.c_fc";
    if (options_.fused) {
      y = node("MatMul", {y, parameter("mlp.c_fc.weight", {"192", "768"})}, kWide);
      path_ = block + ".mlp.act";
      y = node("BiasGelu", {y, parameter("mlp.c_fc.bias", {"768"})}, kWide);
      ++nextNode_;
    } else {
      y = linear("mlp.c_fc", y, {"192", "768"}, kWide);
      path_ = block + ".mlp.act";
      y = node("Gelu", {y}, kWide);
    }
    path_ = block + ".mlp.c_proj";
    y = linear("mlp.c_proj", y, {"768", "192"}, kHidden);
    path_ = block;
    prefix_.clear();
    return node("Add", {x, y}, kHidden);
  }

  Dims dims(int v) const {
    const Value& x = graph_.values(v);
    return Dims(x.dims().begin(), x.dims().end());
  }

  void accumulate(int v, int gradient, int forward) {
    const auto found = gradients_.find(v);
    if (found == gradients_.end()) {
      gradients_[v] = gradient;
      return;
    }
    found->second = emit("Add", {found->second, gradient}, dims(v), snapshot::BACKWARD, forward);
  }

  void gradient() {
    const int forwardNodes = graph_.nodes_size();
    for (int i = forwardNodes - 1; i >= 0; --i) {
      const Node n = graph_.nodes(i);
      path_ = n.provenance().module_path();
      const auto found = gradients_.find(n.outputs(0));
      const bool isLoss = n.outputs(0) == loss_;
      if (!isLoss && found == gradients_.end()) continue;
      const int dy = isLoss ? -1 : found->second;
      const auto back = [&](const std::string& op, const std::vector<int>& inputs, int of) {
        accumulate(of, emit(op, inputs, dims(of), snapshot::BACKWARD, n.id(), graph_.values(of).name() + "_grad"), n.id());
      };
      const auto isParameter = [&](int v) { return graph_.values(v).role() == snapshot::INITIALIZER; };
      const std::string& op = n.op();
      if (isLoss) {
        back(op + "Grad", {n.inputs(0), n.inputs(1)}, n.inputs(0));
      } else if (op == "MatMul") {
        int a = n.inputs(0);
        if (options_.recompute && a == recomputable_) a = recomputedValue_;
        if (options_.recompute && producer_.contains(a) && graph_.nodes(producer_[a]).category() == "activation" &&
            dims(a) == kWide) {
          const Node& act = graph_.nodes(producer_[a]);
          const std::vector<int> inputs(act.inputs().begin(), act.inputs().end());
          a = emit(act.op(), inputs, kWide, snapshot::RECOMPUTE, act.id());
        }
        back("MatMul", {n.inputs(1), dy}, n.inputs(0));
        back("MatMul", {a, dy}, n.inputs(1));
      } else if (op == "Add") {
        for (const int in : n.inputs()) {
          if (isParameter(in)) {
            back("ReduceSum", {dy}, in);
          } else {
            accumulate(in, dy, n.id());
          }
        }
      } else if (op == "LayerNormalization" || op == "BiasGelu") {
        back(op + "Grad", {dy, n.inputs(0)}, n.inputs(0));
        for (int k = 1; k < n.inputs_size(); ++k) back("ReduceSum", {dy}, n.inputs(k));
      } else if (op == "Gather" && isParameter(n.inputs(0))) {
        back("GatherGrad", {dy, n.inputs(1)}, n.inputs(0));
      } else if (op == "Where") {
        back("Where", {n.inputs(0), dy}, n.inputs(1));
      } else if (op == "Mul") {
        back("Mul", {dy, n.inputs(1)}, n.inputs(0));
      } else if (op == "Reshape" || op == "Transpose") {
        back(op, {dy}, n.inputs(0));
      } else if (op == "Softmax" || op == "Gelu" || op == "Dropout") {
        back(op + "Grad", {dy, n.outputs(0)}, n.inputs(0));
      } else if (op == "Split") {
        back("Concat", {dy}, n.inputs(0));
      }
    }
  }

  void optimizer() {
    path_.clear();
    for (const int p : parameters_) {
      const auto found = gradients_.find(p);
      if (found == gradients_.end()) continue;
      const int m = value(graph_.values(p).name() + ".m", dims(p), snapshot::STATE),
                v = value(graph_.values(p).name() + ".v", dims(p), snapshot::STATE);
      emit("AdamW", {p, found->second, m, v}, dims(p), snapshot::OPTIMIZER, -1);
    }
  }

  StepOptions options_;
  Graph graph_;
  int nextValue_ = 0, nextNode_ = 0, loss_ = -1, recomputable_ = -2, recomputedValue_ = -1;
  std::string path_, prefix_;
  std::vector<int> parameters_;
  std::map<int, int> gradients_, producer_;
};

}  // namespace

Graph step(const StepOptions& options) { return Builder(options).build(); }

int blocksFor(int nodes) {
  StepOptions one, two;
  one.blocks = 1;
  two.blocks = 2;
  const int a = step(one).nodes_size(), b = step(two).nodes_size();
  return std::max(1, (nodes - (2 * a - b)) / (b - a));
}

}  // namespace stepscope::generated

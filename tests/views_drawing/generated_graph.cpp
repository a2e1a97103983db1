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

std::uint32_t scramble(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  return x * 0x846ca68bU;
}

}  // namespace

Graph step(const StepOptions& options) { return Builder(options).build(); }

int blocksFor(int nodes) {
  StepOptions one, two;
  one.blocks = 1;
  two.blocks = 2;
  const int a = step(one).nodes_size(), b = step(two).nodes_size();
  return std::max(1, (nodes - (2 * a - b)) / (b - a));
}

snapshot::Plan plan(const Graph& graph) {
  snapshot::Plan plan;
  std::map<int, int> bufferOf;
  std::map<int, int> positionOf;
  for (int i = 0; i < graph.values_size(); ++i) positionOf[graph.values(i).id()] = i;
  const int count = graph.nodes_size();
  std::int64_t persistent = 0;
  const auto bufferFor = [&](int value, int at, const Node& node) {
    const auto found = bufferOf.find(value);
    if (found != bufferOf.end()) {
      snapshot::Buffer* b = plan.mutable_buffers(found->second);
      if (b->in_arena()) b->set_last(at);
      if (b->buffer_class() == snapshot::CLASS_ACTIVATION && node.phase() != snapshot::FORWARD)
        b->set_buffer_class(snapshot::CLASS_STASH);
      if (b->buffer_class() == snapshot::CLASS_BACKWARD && node.phase() == snapshot::OPTIMIZER)
        b->set_buffer_class(snapshot::CLASS_GRADIENT);
      return found->second;
    }
    const Value& v = graph.values(positionOf[value]);
    snapshot::Buffer* b = plan.add_buffers();
    b->set_index(plan.buffers_size() - 1);
    b->set_value(value);
    b->set_name(v.name());
    b->set_bytes((v.bytes() + 63) / 64 * 64);
    b->set_first(at);
    b->set_last(at);
    b->set_shares(-1);
    b->set_in_arena(v.role() == snapshot::NODE_OUTPUT);
    b->set_decision("own memory");
    b->set_buffer_class(v.role() == snapshot::INITIALIZER   ? snapshot::CLASS_PARAMETER
                        : v.role() == snapshot::STATE       ? snapshot::CLASS_OPTIMIZER_STATE
                        : v.role() == snapshot::INPUT       ? snapshot::CLASS_INPUT_DATA
                        : node.phase() == snapshot::FORWARD ? snapshot::CLASS_ACTIVATION
                                                            : snapshot::CLASS_BACKWARD);
    if (!b->in_arena()) {
      persistent += b->bytes();
      b->set_first(0);
      b->set_last(count - 1);
    }
    bufferOf[value] = b->index();
    return b->index();
  };
  int firstBackward = count, firstOptimizer = count;
  for (int i = 0; i < count; ++i) {
    const Node& n = graph.nodes(i);
    snapshot::Instruction* in = plan.add_instructions();
    in->set_index(i);
    in->set_node(n.id());
    in->set_phase(n.phase());
    in->set_op(n.op());
    in->set_label(n.op() + " '" + n.name() + "'");
    in->set_view(n.op() == "Reshape");
    in->set_workspace_buffer(-1);
    if (n.phase() == snapshot::BACKWARD) firstBackward = std::min(firstBackward, i);
    if (n.phase() == snapshot::OPTIMIZER) firstOptimizer = std::min(firstOptimizer, i);
    double flops = 0;
    for (const int v : n.inputs()) {
      snapshot::Operand* o = in->add_inputs();
      o->set_value(v);
      o->set_buffer(v < 0 ? -1 : bufferFor(v, i, n));
      if (v >= 0) {
        o->set_bytes(plan.buffers(o->buffer()).bytes());
        in->set_bytes_read(in->bytes_read() + o->bytes());
        flops += static_cast<double>(o->bytes()) / 4;
      }
    }
    for (const int v : n.outputs()) {
      snapshot::Operand* o = in->add_outputs();
      o->set_value(v);
      o->set_buffer(bufferFor(v, i, n));
      o->set_bytes(plan.buffers(o->buffer()).bytes());
      in->set_bytes_written(in->bytes_written() + o->bytes());
      snapshot::Buffer* out = plan.mutable_buffers(o->buffer());
      const bool elementwise = n.category() == "elementwise" || n.category() == "activation";
      if (n.inputs_size() > 0 && (in->view() || (elementwise && scramble(static_cast<std::uint32_t>(i)) % 3 != 0))) {
        out->set_shares(in->inputs(0).buffer());
        out->set_decision(in->view() ? "view of input 0" : "in place of '" + plan.buffers(out->shares()).name() + "'");
      } else if (elementwise) {
        out->add_refusals("input 0 '" + plan.buffers(in->inputs(0).buffer()).name() +
                          "' is read again by a later instruction");
      }
    }
    in->set_flops(n.op() == "MatMul" ? flops * 192 : flops);
    in->set_implementation(n.op() == "MatMul" ? "onednn brg:avx512_core" : in->view() ? "view" : "reference");
  }
  // Chains of shared memory live as long as their last member; then first fit by time.
  std::vector<int> root(static_cast<std::size_t>(plan.buffers_size()));
  for (int i = 0; i < plan.buffers_size(); ++i) {
    snapshot::Buffer* b = plan.mutable_buffers(i);
    const int s = b->shares();
    if (s >= 0 && s < i && plan.buffers(root[static_cast<std::size_t>(s)]).in_arena() &&
        plan.buffers(root[static_cast<std::size_t>(s)]).bytes() >= b->bytes()) {
      root[static_cast<std::size_t>(i)] = root[static_cast<std::size_t>(s)];
    } else {
      root[static_cast<std::size_t>(i)] = i;
      if (s >= 0) {
        b->set_shares(-1);
        b->set_decision("own memory");
      }
    }
  }
  std::vector<int> last(root.size());
  for (int i = 0; i < plan.buffers_size(); ++i) {
    int& l = last[static_cast<std::size_t>(root[static_cast<std::size_t>(i)])];
    l = std::max(l, plan.buffers(i).last());
  }
  struct Block {
    std::int64_t offset, bytes;
    int last;
  };
  std::vector<Block> live;
  std::int64_t arena = 0, peakLive = 0;
  int peakAt = 0;
  for (int i = 0; i < plan.buffers_size(); ++i) {
    snapshot::Buffer* b = plan.mutable_buffers(i);
    if (!b->in_arena()) continue;
    if (root[static_cast<std::size_t>(i)] != i) {
      b->set_offset(plan.buffers(root[static_cast<std::size_t>(i)]).offset());
      continue;
    }
    std::erase_if(live, [&](const Block& x) { return x.last < b->first(); });
    std::int64_t offset = 0;
    auto at = live.begin();
    for (; at != live.end() && at->offset - offset < b->bytes(); ++at) offset = at->offset + at->bytes;
    live.insert(at, {offset, b->bytes(), last[static_cast<std::size_t>(i)]});
    b->set_offset(offset);
    arena = std::max(arena, offset + b->bytes());
    std::int64_t sum = 0;
    for (const Block& x : live) sum += x.bytes;
    if (sum > peakLive) {
      peakLive = sum;
      peakAt = b->first();
    }
  }
  plan.set_arena_bytes(arena);
  plan.set_lower_bound_bytes(peakLive);
  plan.set_persistent_bytes(persistent);
  plan.set_peak_instruction(peakAt);
  plan.set_first_backward(firstBackward);
  plan.set_first_optimizer(firstOptimizer);
  for (const auto& [owner, share] : {std::pair{"stash", 60}, {"backward values", 25}, {"gradients", 15}}) {
    snapshot::MemoryOwner* o = plan.add_peak_owners();
    o->set_owner(owner);
    o->set_bytes(peakLive * share / 100);
  }
  return plan;
}

snapshot::StepRecord record(const snapshot::Plan& plan, std::int64_t step, std::int64_t beginNs) {
  snapshot::StepRecord record;
  record.set_step(step);
  record.set_begin_ns(beginNs);
  record.set_loss(6.0 - 0.01 * static_cast<double>(step));
  record.set_has_loss(true);
  std::int64_t now = beginNs + 20'000;
  for (const auto& in : plan.instructions()) {
    const std::uint32_t noise = scramble(static_cast<std::uint32_t>(in.index()) * 31U + static_cast<std::uint32_t>(step));
    const auto base =
        static_cast<std::int64_t>(in.view() ? 300 : 3000 + in.flops() / 40 + static_cast<double>(in.bytes_written()) / 8);
    const std::int64_t ns = base + static_cast<std::int64_t>(noise % 1000) * base / 4000;
    auto* span = record.add_spans();
    span->set_instruction(in.index());
    span->set_node(in.node());
    span->set_begin_ns(now);
    span->set_end_ns(now + ns);
    span->set_thread(noise % 17 == 0 && in.phase() == snapshot::OPTIMIZER ? 1 : 0);
    now += ns + 400 + noise % 300;
  }
  record.set_ns(now - beginNs);
  record.set_planned_bytes(plan.arena_bytes() + plan.persistent_bytes());
  record.set_peak_bytes(record.planned_bytes() - 4096 * 37);
  return record;
}

std::vector<snapshot::PhaseSpan> phases() {
  std::vector<snapshot::PhaseSpan> list;
  std::int64_t now = 1'000'000;
  const auto add = [&](const std::string& name, std::int64_t ns,
                       const std::vector<std::pair<std::string, std::int64_t>>& children) {
    const int parent = static_cast<int>(list.size());
    auto& span = list.emplace_back();
    span.set_name(name);
    span.set_parent(-1);
    span.set_begin_ns(now);
    span.set_ns(ns);
    std::int64_t inner = now + ns / 50;
    for (const auto& [child, time] : children) {
      auto& c = list.emplace_back();
      c.set_name(child);
      c.set_depth(1);
      c.set_parent(parent);
      c.set_begin_ns(inner);
      c.set_ns(time);
      c.mutable_pass()->set_name(child);
      c.mutable_pass()->set_matches(static_cast<int>(time % 13));
      inner += time + 2000;
    }
    now += ns + 30'000;
  };
  add("load", 38'000'000, {{"parse", 9'000'000}, {"materialise", 27'000'000}});
  add("check", 1'900'000, {});
  add("inline", 700'000, {});
  add("infer", 6'400'000, {});
  add("attach loss", 300'000, {});
  add("pre-grad", 11'800'000,
      {{"fold_constants", 6'100'000}, {"fuse_gelu", 1'700'000}, {"fuse_bias_gelu", 900'000}, {"remove_dead", 1'200'000}});
  add("gradient", 5'500'000, {});
  add("post-grad", 3'100'000, {{"fuse_layernorm_grad", 1'200'000}, {"remove_dead", 900'000}});
  add("optimizer", 2'400'000, {});
  add("plan", 14'700'000, {{"order", 3'000'000}, {"alias", 5'300'000}, {"offsets", 5'900'000}});
  add("bind", 52'000'000, {{"onednn primitives", 47'000'000}});
  return list;
}

}  // namespace stepscope::generated

// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/workbench/fake_model.h"

#include "tests/views_drawing/generated_graph.h"

namespace stepscope {

using namespace snapshot;

FakeModel FakeModel::generated(int nodes) {
  FakeModel m;
  m.graph = generated::step({.blocks = generated::blocksFor(nodes)});
  m.plan = generated::plan(m.graph);
  m.loss = m.graph.loss();
  m.firstBackward = m.plan.first_backward();
  m.firstOptimizer = m.plan.first_optimizer();
  return m;
}

FakeModel::FakeModel(int blocks) {
  const int ids = value("input_ids", INPUT, {"2", "128"}, "int64");
  graph.add_inputs(ids);
  const int wte = parameter("wte.weight", {"8192", "192"});
  int x = node("Gather", "movement", "wte", {wte, ids}, "wte_out", {"2", "128", "192"});
  struct Step {
    int node, in, out;
    std::string op, module;
    int weight;
  };
  std::vector<Step> steps;
  for (int b = 0; b < blocks; ++b) {
    const std::string h = "transformer.h." + std::to_string(b);
    const int skip = x;
    const auto add = [&](const std::string& op, const std::string& category, const std::string& module, int weight,
                         std::vector<std::string> dims) {
      std::vector<int> in = {x};
      if (weight >= 0) in.push_back(weight);
      const int from = x;
      x = node(op, category, h + module, in, h + module + "/out", std::move(dims));
      steps.push_back({graph.nodes(graph.nodes_size() - 1).id(), from, x, op, h + module, weight});
    };
    add("LayerNormalization", "normalization", ".ln_2", parameter(h + ".ln_2.weight", {"192"}), {"2", "128", "192"});
    add("MatMul", "matmul", ".mlp.c_fc", parameter(h + ".mlp.c_fc.weight", {"192", "768"}), {"2", "128", "768"});
    add("Gelu", "activation", ".mlp.act", -1, {"2", "128", "768"});
    add("MatMul", "matmul", ".mlp.c_proj", parameter(h + ".mlp.c_proj.weight", {"768", "192"}), {"2", "128", "192"});
    const int branch = x;
    x = node("Add", "elementwise", h, {skip, branch}, h + "/residual", {"2", "128", "192"});
    steps.push_back({graph.nodes(graph.nodes_size() - 1).id(), branch, x, "Add", h, -1});
  }
  const int head = parameter("lm_head.weight", {"192", "8192"});
  int before = x;
  x = node("MatMul", "matmul", "lm_head", {x, head}, "logits", {"2", "128", "8192"});
  steps.push_back({graph.nodes(graph.nodes_size() - 1).id(), before, x, "MatMul", "lm_head", head});
  before = x;
  const int labels = value("labels", INPUT, {"2", "128"}, "int64");
  graph.add_inputs(labels);
  loss = node("SoftmaxCrossEntropyLoss", "loss", "loss", {x, labels}, "loss", {});
  steps.push_back({graph.nodes(graph.nodes_size() - 1).id(), before, loss, "SoftmaxCrossEntropyLoss", "loss", -1});
  graph.set_loss(loss);
  graph.add_outputs(loss);
  phase = BACKWARD;
  firstBackward = graph.nodes_size();
  std::vector<std::pair<int, int>> gradients;
  int g = -1;
  for (auto it = steps.rbegin(); it != steps.rend(); ++it) {
    forward = it->node;
    const Value& in = graph.values(it->in);
    std::vector<std::string> dims(in.dims().begin(), in.dims().end());
    const std::string category = graph.nodes(position[it->node]).category();
    const int next = node(it->op == "MatMul" ? "MatMul" : it->op + "Grad", category, it->module,
                          g < 0 ? std::vector<int>{it->out} : std::vector<int>{g, it->in}, in.name() + "_grad", dims);
    if (it->weight >= 0) {
      const Value& w = graph.values(it->weight);
      std::vector<std::string> wdims(w.dims().begin(), w.dims().end());
      gradients.push_back({it->weight, node(it->op == "MatMul" ? "MatMul" : "ReduceSum", category, it->module,
                                            {it->in, g < 0 ? it->out : g}, w.name() + "_grad", wdims)});
    }
    g = next;
  }
  forward = -1;
  phase = OPTIMIZER;
  firstOptimizer = graph.nodes_size();
  for (const auto& [weight, gradient] : gradients) {
    const Value w = graph.values(weight);
    std::vector<std::string> dims(w.dims().begin(), w.dims().end());
    const int m = value(w.name() + "/m", STATE, dims, "float32");
    node("AdamW", "optimizer", "", {weight, gradient, m}, w.name() + "/next", dims);
  }
  graph.set_phase("optimizer");
  graph.set_name("made_up");
  makePlan();
}

int FakeModel::value(const std::string& name, ValueRole role, const std::vector<std::string>& dims,
                     const std::string& dtype) {
  Value* v = graph.add_values();
  v->set_id(graph.values_size() - 1);
  v->set_name(name);
  v->set_dtype(dtype);
  v->set_rank_known(true);
  std::int64_t bytes = dtype == "int64" ? 8 : 4;
  for (const auto& d : dims) {
    v->add_dims(d);
    bytes *= std::stoll(d);
  }
  v->set_role(role);
  v->set_bytes(bytes);
  return v->id();
}

int FakeModel::parameter(const std::string& name, const std::vector<std::string>& dims) {
  const int id = value(name, INITIALIZER, dims, "float32");
  graph.mutable_values(id)->set_trained(true);
  graph.mutable_values(id)->set_trained_reason("reaches the loss");
  return id;
}

int FakeModel::node(const std::string& op, const std::string& category, const std::string& module,
                    const std::vector<int>& inputs, const std::string& out, const std::vector<std::string>& dims) {
  const int output = value(out, NODE_OUTPUT, dims, "float32");
  Node* n = graph.add_nodes();
  n->set_id(1000 + graph.nodes_size());
  n->set_name("/" + module + "/" + op);
  n->set_op(op);
  for (const int i : inputs) n->add_inputs(i);
  n->add_outputs(output);
  n->set_phase(phase);
  n->set_category(category);
  auto* p = n->mutable_provenance();
  p->set_pass(phase == FORWARD ? "import" : phase == BACKWARD ? "gradient" : "optimizer");
  p->set_module_path(module);
  p->set_forward(forward);
  p->set_imported(forward);
  if (forward >= 0) p->add_sources(forward);
  if (phase == FORWARD && !module.empty()) {
    p->set_source_file("/home/someone/model/block.py");
    p->set_source_line(40 + graph.nodes_size());
    p->set_source_code("x = x + self.mlp(self.ln_2(x))");
  }
  position[n->id()] = graph.nodes_size() - 1;
  return output;
}

void FakeModel::makePlan() {
  std::map<int, int> bufferOf;
  std::int64_t top = 0;
  std::map<int, int> lastUse;
  for (int i = 0; i < graph.nodes_size(); ++i) {
    for (const int v : graph.nodes(i).inputs()) lastUse[v] = i;
  }
  for (const Value& v : graph.values()) {
    Buffer* b = plan.add_buffers();
    b->set_index(plan.buffers_size() - 1);
    b->set_value(v.id());
    b->set_name(v.name());
    b->set_bytes(v.bytes());
    b->set_shares(-1);
    b->set_first(0);
    b->set_last(lastUse[v.id()]);
    b->set_decision("own memory");
    const bool persistent = v.role() != NODE_OUTPUT;
    b->set_in_arena(!persistent);
    b->set_buffer_class(v.trained()         ? CLASS_PARAMETER
                        : v.role() == STATE ? CLASS_OPTIMIZER_STATE
                        : v.role() == INPUT ? CLASS_INPUT_DATA
                                            : CLASS_BACKWARD);
    if (persistent) plan.set_persistent_bytes(plan.persistent_bytes() + v.bytes());
    bufferOf[v.id()] = b->index();
  }
  for (int i = 0; i < graph.nodes_size(); ++i) {
    const Node& n = graph.nodes(i);
    Instruction* in = plan.add_instructions();
    in->set_index(i);
    in->set_node(n.id());
    in->set_phase(n.phase());
    in->set_op(n.op());
    in->set_label(n.op() + " '" + n.name() + "'");
    in->set_implementation(n.category() == "matmul" ? "onednn brg:avx512_core" : "reference");
    in->set_workspace_buffer(-1);
    in->set_flops(n.category() == "matmul" ? 75497472.0 : 0);
    for (const int v : n.inputs()) {
      auto* o = in->add_inputs();
      o->set_value(v);
      o->set_buffer(bufferOf[v]);
      o->set_bytes(graph.values(v).bytes());
      in->set_bytes_read(in->bytes_read() + o->bytes());
    }
    const int v = n.outputs(0);
    auto* o = in->add_outputs();
    o->set_value(v);
    o->set_buffer(bufferOf[v]);
    o->set_bytes(graph.values(v).bytes());
    in->set_bytes_written(o->bytes());
    Buffer* b = plan.mutable_buffers(bufferOf[v]);
    b->set_first(i);
    b->set_last(std::max(i, b->last()));
    if (n.op() == "Gelu" || n.op() == "GeluGrad" || n.op() == "Add") {
      b->set_shares(bufferOf[n.inputs(0)]);
      b->set_offset(plan.buffers(b->shares()).offset());
      b->set_decision("in place of '" + graph.values(n.inputs(0)).name() + "'");
    } else {
      b->set_offset(top);
      top += (b->bytes() + 63) / 64 * 64;
      if (top > (96LL << 20)) top = 0;
      b->add_refusals("input 0 '" + graph.values(n.inputs(0)).name() + "' is read again by instruction " +
                      std::to_string(lastUse[n.inputs(0)]));
    }
    if (n.phase() == FORWARD) b->set_buffer_class(b->last() >= firstBackward ? CLASS_STASH : CLASS_ACTIVATION);
    if (n.phase() == OPTIMIZER) b->set_buffer_class(CLASS_UPDATE);
    plan.set_arena_bytes(std::max(plan.arena_bytes(), top));
  }
  plan.set_lower_bound_bytes(plan.arena_bytes() * 99 / 100);
  plan.set_peak_instruction(firstBackward);
  plan.set_first_backward(firstBackward);
  plan.set_first_optimizer(firstOptimizer);
  plan.set_signature("input_ids int64[2, 128]; labels int64[2, 128]");
  plan.set_reason("first batch");
  auto* owner = plan.add_peak_owners();
  owner->set_owner("stash");
  owner->set_bytes(plan.arena_bytes() / 2);
}

}  // namespace stepscope

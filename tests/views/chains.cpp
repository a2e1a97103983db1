// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/views/chains.h"

#include <string>
#include <utility>

namespace stepscope {

GraphPtr chain(int nodes) {
  snapshot::Graph g;
  g.set_phase("optimizer");
  for (int i = 0; i <= nodes; ++i) {
    auto* v = g.add_values();
    v->set_id(i);
    v->set_name("transformer.h." + std::to_string(i / 10) + "/value_" + std::to_string(i));
    v->set_dtype("float32");
    v->set_rank_known(true);
    v->add_dims("4");
    v->set_bytes(16);
  }
  for (int i = 0; i < nodes; ++i) {
    auto* n = g.add_nodes();
    n->set_id(i);
    n->set_op(i % 3 ? "Add" : "MatMul");
    n->set_name("node_" + std::to_string(i));
    n->add_inputs(i);
    n->add_outputs(i + 1);
    n->set_phase(i * 2 < nodes ? snapshot::FORWARD : snapshot::BACKWARD);
    n->mutable_provenance()->set_forward(i * 2 < nodes ? -1 : nodes - 1 - i);
    n->mutable_provenance()->set_module_path("transformer.h." + std::to_string(i / 10));
  }
  return GraphSnapshot::make(std::move(g));
}

PlanPtr planOf(const GraphSnapshot& graph) {
  snapshot::Plan p;
  for (const auto& v : graph.graph().values()) {
    auto* b = p.add_buffers();
    b->set_value(v.id());
    b->set_name(v.name());
    b->set_in_arena(true);
    b->set_offset((v.id() % 3) * 16);
    b->set_bytes(16);
    b->set_first(v.id() - 1);
    b->set_last(v.id());
    b->set_shares(-1);
  }
  for (const auto& n : graph.graph().nodes()) {
    auto* in = p.add_instructions();
    in->set_node(n.id());
    in->set_op(n.op());
    in->set_label(n.op() + " '" + n.name() + "'");
    in->set_phase(n.phase());
    in->set_bytes_written(n.id() * 1024);
    auto* o = in->add_outputs();
    o->set_value(n.outputs(0));
    o->set_buffer(n.outputs(0));
    auto* i = in->add_inputs();
    i->set_value(n.inputs(0));
    i->set_buffer(n.inputs(0));
    in->set_workspace_buffer(-1);
  }
  return PlanSnapshot::make(std::move(p));
}

}  // namespace stepscope

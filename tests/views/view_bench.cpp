// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/views/view_bench.h"

#include <string>
#include <tuple>

namespace stepscope {
namespace {

snapshot::Value* addValue(snapshot::Graph& g, int id, const char* name, const char* dtype, std::vector<int> dims,
                          snapshot::ValueRole role) {
  auto* v = g.add_values();
  v->set_id(id);
  v->set_name(name);
  v->set_dtype(dtype);
  v->set_rank_known(true);
  for (const int d : dims) v->add_dims(std::to_string(d));
  v->set_role(role);
  return v;
}

}  // namespace

GraphPtr graph() {
  snapshot::Graph g;
  addValue(g, 0, "ids", "int64", {2, 3}, snapshot::INPUT);
  addValue(g, 1, "mask", "int64", {2, 3}, snapshot::INPUT);
  addValue(g, 2, "image", "float32", {2, 1, 2, 2}, snapshot::INPUT);
  addValue(g, 3, "label", "int64", {2}, snapshot::INPUT);
  for (int i = 0; i < 4; ++i)
    addValue(g, 10 + i, ("out" + std::to_string(i)).c_str(), "float32", {2, 3}, snapshot::NODE_OUTPUT);
  for (int i = 0; i < 4; ++i) {
    auto* n = g.add_nodes();
    n->set_id(i);
    n->set_op("Add");
    n->set_name("h.0/Add_" + std::to_string(i));
    n->add_outputs(10 + i);
    n->set_phase(i == 3 ? snapshot::BACKWARD : snapshot::FORWARD);
    n->mutable_provenance()->set_forward(i == 3 ? 0 : -1);
    if (i == 3) continue;
    n->mutable_provenance()->set_source_file("/home/them/project/net/model.py");
    n->mutable_provenance()->set_source_line(i < 2 ? 3 : 5);
    n->mutable_provenance()->set_source_code(i < 2 ? "x = x + self.bias" : "return x");
  }
  g.add_inputs(0);
  g.add_inputs(1);
  g.add_inputs(2);
  g.add_inputs(3);
  return GraphSnapshot::make(std::move(g));
}

ModelPtr model() {
  auto m = std::make_shared<snapshot::ModelInfo>();
  using Info = snapshot::InputInfo;
  for (const auto& [name, role, kind] :
       {std::tuple("ids", "token ids below 9", Info::TOKENS), std::tuple("mask", "attention mask", Info::MASK),
        std::tuple("image", "data", Info::DATA), std::tuple("label", "class labels below 10", Info::LABELS)}) {
    auto* i = m->add_inputs();
    i->set_name(name);
    i->set_role(role);
    i->set_kind(kind);
  }
  return m;
}

StepPtr stepOf(std::int64_t number, std::int64_t valid) {
  auto s = std::make_shared<snapshot::StepRecord>();
  s->set_step(number);
  s->set_samples(2);
  s->set_tokens(6);
  auto* d = s->add_densities();
  d->set_input("ids");
  d->set_kind("tokens");
  d->set_valid(valid);
  d->set_total(6);
  d->set_rows(2);
  d->set_shortest(1);
  d->set_longest(3);
  d->set_reason("padding where 'mask' is 0");
  return s;
}

}  // namespace stepscope

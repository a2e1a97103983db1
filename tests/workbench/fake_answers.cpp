// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/workbench/fake_answers.h"

namespace stepscope {

using namespace snapshot;

void describeModel(const FakeModel& fake, const OpenModel& open, Response* r) {
  if (open.path().find("missing") != std::string::npos) {
    r->mutable_error()->set_code("not_found");
    r->mutable_error()->set_message("model '" + open.path() + "': no such file; expected an .onnx file");
    return;
  }
  auto* m = r->mutable_model();
  m->set_path(open.path());
  m->set_file_bytes(12'345'678);
  m->set_producer("pytorch 2.5");
  m->set_ir_version(8);
  (*m->mutable_opsets())[""] = 17;
  m->set_node_count(fake.firstBackward);
  for (const char* name : {"input_ids", "labels"}) {
    auto* i = m->add_inputs();
    i->set_name(name);
    i->set_dtype("int64");
    i->add_dims("batch");
    i->add_dims("sequence");
    i->set_role(name[0] == 'i' ? "token ids below 8192" : "class labels below 8192");
    i->set_kind(name[0] == 'i' ? InputInfo::TOKENS : InputInfo::LABELS);
    i->set_reason(name[0] == 'i' ? "gathers from wte.weight" : "labels of the loss");
  }
  auto* o = m->add_outputs();
  o->set_name("loss");
  o->set_dtype("float32");
  m->set_proposed_loss("loss");
  m->set_loss_reason("the only scalar float output");
  m->add_loss_candidates("logits");
  for (const auto& v : fake.graph.values()) {
    if (v.role() != INITIALIZER) continue;
    auto* p = m->add_parameters();
    p->set_name(v.name());
    p->set_dtype(v.dtype());
    for (const auto& d : v.dims()) p->add_dims(std::stoll(d));
    p->set_bytes(v.bytes());
    p->set_trained(true);
    p->set_reason("reaches the loss");
    m->set_parameter_count(m->parameter_count() + v.bytes() / 4);
  }
  std::map<std::string, int> ops;
  for (int i = 0; i < fake.firstBackward; ++i) ++ops[fake.graph.nodes(i).op()];
  for (const auto& [op, count] : ops) {
    auto* c = m->add_ops();
    c->set_op(op);
    c->set_count(count);
    c->set_has_gradient(true);
    c->set_has_kernel(true);
    c->set_has_fast_kernel(op == "MatMul");
  }
}

void describeBuild(const FakeModel& fake, BuildReply* reply) {
  std::int64_t at = 1000;
  int parent = 0;
  for (const char* name :
       {"load", "check", "inline", "infer", "attach loss", "pre-grad passes", "gradient", "optimizer", "plan", "bind"}) {
    auto* s = reply->add_phases();
    s->set_name(name);
    s->set_parent(-1);
    s->set_begin_ns(at);
    s->set_ns(1'000'000 + 300'000 * parent);
    s->set_count(40 + parent);
    at += s->ns();
    ++parent;
  }
  reply->add_stages("load");
  reply->add_stages("optimizer");
  reply->set_loss(fake.loss);
}

void describeOptions(const std::map<std::string, std::string>& values, OptionList* list) {
  for (const auto& [name, value] : values) {
    auto* o = list->add_options();
    o->set_name(name);
    o->set_value(value);
    o->set_default_value(name == "recompute" ? "off" : "on");
    o->set_set_by(o->value() == o->default_value() ? "default" : "window");
    o->set_doc("What " + name + " does to the step.");
    o->set_effect(value == "on" ? "removed 12 nodes, saved 3.2 MiB" : "");
    o->add_choices("on");
    o->add_choices("off");
  }
}

void describeRecompute(const GetRecompute& asked, RecomputeReport* r) {
  const std::int64_t peak = 48 << 20;
  r->set_plain_peak_bytes(peak);
  r->set_present_peak_bytes(peak);
  r->set_plain_arena_bytes(peak);
  r->set_present_arena_bytes(peak);
  r->set_timed_steps(9);
  r->set_plain_step_ns(52e6);
  r->set_measured(true);
  r->set_basis("medians of the newest 9 steps, by instruction");
  for (int i = 0; i < 4; ++i) {
    auto* p = r->add_patterns();
    p->set_pattern(i == 3 ? "block" : std::string(static_cast<std::size_t>(i) + 1, 'G') + "elu+");
    p->set_occurrences(3 + i);
    p->set_nodes(4 * (1 + i));
    p->set_measured_nodes(p->nodes());
    p->add_shapes("float32[2, 128, 768] × 3");
    p->set_stash_bytes((8 << 20) - (i << 20));
    p->set_saved_bytes((6 << 20) - (i << 21));
    p->set_saved_arena_bytes((6 << 20) - (i << 21));
    p->set_cost_ns(1e6 * (i + 1));
    p->add_makers(i);
    auto* point = r->add_curve();
    point->set_peak_bytes(peak - (i << 22));
    point->set_arena_bytes(peak - (i << 22));
    point->set_extra_ns(2e6 * i);
    point->set_step_ns(52e6 + 2e6 * i);
    point->set_nodes(i);
    point->set_plan(i == 0 ? "" : "Gelu+:1:" + std::to_string(i));
    point->set_exact(true);
  }
  auto* run = r->add_runs();
  run->set_peak_bytes(peak);
  run->set_steps(9);
  run->set_median_ns(52.5e6);
  run->set_min_ns(51e6);
  run->set_max_ns(55e6);
  run->set_present(true);
  auto* refused = r->add_refused();
  refused->set_bytes(3 << 20);
  refused->set_reason("needs MatMul 'h.0/attn' again, which is costly");
  if (asked.what_if()) *r->mutable_what_if() = r->curve(2);
}

}  // namespace stepscope

// SPDX-License-Identifier: GPL-3.0-or-later
// What is planned and recorded of a made-up step.
#include <algorithm>
#include <map>
#include <string>

#include "tests/views_drawing/generated_graph.h"

namespace stepscope::generated {
namespace {

using snapshot::Graph;
using snapshot::Node;
using snapshot::Value;

std::uint32_t scramble(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  return x * 0x846ca68bU;
}

}  // namespace

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

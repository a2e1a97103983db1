// SPDX-License-Identifier: GPL-3.0-or-later
// A worker that speaks the protocol about a made-up transformer, for tests of the window without the engine.
//
// Environment: FAKE_BLOCKS=N blocks (default 3), FAKE_NODES=N a generated step of about that many nodes instead.
// FAKE_FUZZ=SEED damages answers once the model is built: see fuzz.h. FAKE_FAULT=crash|hang|stop|garbage|oversize|truncate
// happens at the first StepInstruction; FAKE_FAULT=build ends it in a pass of the build, FAKE_FAULT=rebuild in one of a
// later build: of a second set-up, of an option between steps, of the step that an option waited for. FAKE_NAN=I makes the
// output of instruction I hold a NaN. FAKE_CONFIGURE_MS=N settings take so long. FAKE_VERSION=TEXT is the version that it
// says to be of.
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/snapshot/worker.pb.h"
#include "tests/workbench/fake_answers.h"
#include "tests/workbench/fake_model.h"
#include "tests/workbench/fuzz.h"

namespace {

using namespace stepscope;
using namespace stepscope::snapshot;

bool readAll(void* to, std::size_t n) {
  auto* p = static_cast<char*>(to);
  while (n > 0) {
    const ssize_t got = read(0, p, n);
    if (got <= 0) return false;
    p += got;
    n -= static_cast<std::size_t>(got);
  }
  return true;
}

void writeAll(const std::string& s) {
  std::size_t at = 0;
  while (at < s.size()) {
    const ssize_t n = write(1, s.data() + at, s.size() - at);
    if (n <= 0) std::exit(0);
    at += static_cast<std::size_t>(n);
  }
}

int environment(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : fallback;
}

void send(const Response& r) {
  static Fuzz fuzz(environment("FAKE_FUZZ", -1));
  writeAll(fuzz.frames(r));
}

class Worker {
 public:
  int run() {
    for (;;) {
      unsigned char head[4];
      if (!readAll(head, 4)) return 0;
      const std::uint32_t n = head[0] | head[1] << 8 | head[2] << 16 | static_cast<std::uint32_t>(head[3]) << 24;
      std::string body(n, '\0');
      if (!readAll(body.data(), n)) return 0;
      Request request;
      if (!request.ParseFromString(body)) return 3;
      if (request.has_shutdown()) return 0;
      handle(request);
    }
  }

 private:
  Response reply(const Request& q) {
    Response r;
    r.set_id(q.id());
    r.set_done(true);
    return r;
  }

  std::int64_t cost(int i) const {
    const auto& in = model_.plan.instructions(i);
    return 2000 + static_cast<std::int64_t>(in.flops() / 150) + in.bytes_written() / 12;
  }

  void advance(int to, Position* p) {
    for (; instruction_ < to; ++instruction_) {
      auto* s = p->add_spans();
      s->set_instruction(instruction_);
      s->set_node(model_.plan.instructions(instruction_).node());
      s->set_begin_ns(clock_);
      clock_ += cost(instruction_) + (step_ * 37) % 500;
      s->set_end_ns(clock_);
    }
  }

  void fill(Position* p, const std::string& by) {
    p->set_in_step(inStep_);
    p->set_step(step_);
    p->set_instruction(instruction_);
    p->set_stopped_by(by);
    p->set_has_loss(inStep_ && instruction_ >= model_.firstBackward);
    p->set_loss(lossAt(step_));
    for (const int v : watched_) {
      auto* t = p->add_watched();
      t->set_value(v);
      t->set_name(model_.graph.values(v).name());
      statistics(v, t->mutable_statistics());
    }
  }

  static double lossAt(std::int64_t step) {
    return 9.0 * std::exp(-static_cast<double>(step) / 40.0) + 0.2 * std::sin(static_cast<double>(step));
  }

  double element(int v, std::int64_t i) const {
    if (nan_ >= 0 && v == model_.plan.instructions(nan_).outputs(0).value() && i == 5) return std::nan("");
    return std::sin(0.37 * static_cast<double>(i) + v) * 1e-3 * (1 + v % 7);
  }

  void statistics(int v, TensorStatistics* s) {
    const std::int64_t n = std::max<std::int64_t>(1, model_.graph.values(v).bytes() / 4);
    s->set_count(n);
    s->set_min(-1e-3 * (1 + v % 7));
    s->set_max(1e-3 * (1 + v % 7));
    s->set_mean(1.08e-7);
    s->set_std(0.7e-3 * (1 + v % 7));
    s->set_norm(0.027581);
    if (nan_ >= 0 && v == model_.plan.instructions(nan_).outputs(0).value()) s->set_nan(1);
    s->set_negative(n / 2);
    for (int b = 0; b < 64; ++b)
      s->add_histogram(static_cast<std::int64_t>(1000 * std::exp(-(b - 31.5) * (b - 31.5) / 120)));
  }

  void finish(Response* done, const Request& q) {
    Response record;
    record.set_id(q.id());
    auto* s = record.mutable_step();
    Position p;
    s->set_begin_ns(clock_);
    instruction_ = 0;
    advance(model_.plan.instructions_size(), &p);
    *s->mutable_spans() = p.spans();
    s->set_step(step_);
    s->set_loss(lossAt(step_));
    s->set_has_loss(true);
    s->set_learning_rate(1e-3);
    s->set_gradient_norm(1.0 + lossAt(step_) / 10);
    s->set_has_gradient_norm(true);
    s->set_updated(true);
    s->set_samples(2);
    s->set_tokens(256);
    s->set_ns(clock_ - s->begin_ns());
    s->set_planned_bytes(model_.plan.arena_bytes() + model_.plan.persistent_bytes());
    s->set_peak_bytes(s->planned_bytes());
    s->set_batch("entry " + std::to_string(step_ % 8) + " of 8");
    ++step_;
    inStep_ = false;
    instruction_ = 0;
    *done = record;
    done->set_done(true);
  }

  void fault() {
    const char* kind = std::getenv("FAKE_FAULT");
    if (!kind) return;
    if (!std::strcmp(kind, "crash")) std::abort();
    if (!std::strcmp(kind, "hang")) sleep(600);
    if (!std::strcmp(kind, "stop")) std::raise(SIGSTOP);
    if (!std::strcmp(kind, "garbage")) writeAll(std::string("\x05\0\0\0\xff\xff\xff\xff\xff", 9));
    if (!std::strcmp(kind, "oversize")) writeAll(std::string("\xff\xff\xff\xff", 4));
    if (!std::strcmp(kind, "truncate")) {
      writeAll(std::string("\x64\0\0\0abc", 7));
      std::exit(0);
    }
  }

  static bool faultIs(const char* name) {
    const char* kind = std::getenv("FAKE_FAULT");
    return kind && std::strcmp(kind, name) == 0;
  }

  // A phase, and behind it one with a pass that is the end of it. A build begins from the graphs of the file.
  void dieOfPass() {
    const auto span = [](const char* name, int depth, std::int64_t ns) {
      Response event;
      event.mutable_phase()->set_name(name);
      event.mutable_phase()->set_depth(depth);
      event.mutable_phase()->set_ns(ns);
      if (depth > 0) event.mutable_phase()->mutable_pass()->set_name(name);
      send(event);
    };
    const auto stage = [this](const char* name) {
      Response event;
      *event.mutable_graph() = model_.graph;
      event.mutable_graph()->set_phase(name);
      send(event);
    };
    for (const char* name : {"load", "inline", "infer"}) stage(name);
    span("attach loss", 0, -1);
    span("attach loss", 0, 1000);
    stage("attach loss");
    span("pre-grad passes", 0, -1);
    span("fuse_gelu", 1, -1);
    std::abort();
  }

  void tellOfNan() {
    const auto& in = model_.plan.instructions(nan_);
    Response event;
    event.mutable_alert()->set_severity(Alert::ERROR);
    event.mutable_alert()->set_code("nan");
    event.mutable_alert()->set_step(step_);
    event.mutable_alert()->set_instruction(nan_);
    event.mutable_alert()->set_node(in.node());
    event.mutable_alert()->set_value(in.outputs(0).value());
    event.mutable_alert()->set_message("NaN made by " + std::to_string(nan_) + " " + in.op());
    send(event);
  }

  bool breaksAt(int i, int* id) const {
    for (const auto& b : breakpoints_) {
      if (!b.enabled()) continue;
      const auto& in = model_.plan.instructions(i);
      const bool hit = (b.condition_case() == Breakpoint::kInstruction && b.instruction() == i) ||
                       (b.condition_case() == Breakpoint::kOp && b.op() == in.op()) ||
                       (b.condition_case() == Breakpoint::kNan && b.nan() && nan_ >= 0 && i == nan_ + 1);
      if (hit) {
        *id = b.id();
        return true;
      }
    }
    return false;
  }

  void handle(const Request& q) {
    Response r = reply(q);
    const int size = model_.plan.instructions_size();
    switch (q.request_case()) {
      case Request::kHello: {
        r.mutable_hello()->set_protocol(1);
        r.mutable_hello()->set_version(std::getenv("FAKE_VERSION") ? std::getenv("FAKE_VERSION") : "0.1.0");
        auto* m = r.mutable_hello()->mutable_machine();
        m->set_cpu("Made-up CPU");
        m->set_cores(2);
        m->set_memory_bytes(24LL << 30);
        m->add_cpu_features("avx512f");
        m->set_gpu_note("no GPU found");
        break;
      }
      case Request::kOpen: describeModel(model_, q.open(), &r); break;
      case Request::kConfigure:
        usleep(static_cast<useconds_t>(environment("FAKE_CONFIGURE_MS", 0)) * 1000);
        for (const Setting& s : q.configure().settings())
          if (const auto at = s.value().find('='); s.name() == "set" && at != std::string::npos)
            options_[s.value().substr(0, at)] = s.value().substr(at + 1);
        break;
      case Request::kBuild:
        if (faultIs("build") || (faultIs("rebuild") && built_)) dieOfPass();
        built_ = true;
        describeBuild(model_, r.mutable_build());
        break;
      case Request::kGraph: *r.mutable_graph() = model_.graph; break;
      case Request::kPlan: *r.mutable_plan() = model_.plan; break;
      case Request::kOptions: describeOptions(options_, r.mutable_options()); break;
      case Request::kSetOption:
        if (faultIs("rebuild") && !inStep_) dieOfPass();
        waits_ = inStep_;
        options_[q.set_option().name()] = q.set_option().value();
        for (const Setting& more : q.set_option().more()) options_[more.name()] = more.value();
        describeOptions(options_, r.mutable_options());
        r.mutable_options()->set_waits(waits_);
        break;
      case Request::kDeterminism:
        for (const auto& n : model_.graph.nodes()) {
          auto* d = r.mutable_determinism()->add_nodes();
          d->set_node(n.id());
          d->set_verdict(n.category() == "reduction" ? "depends on thread count" : "deterministic");
          d->set_reason("static partition");
        }
        break;
      case Request::kState:
        r.mutable_state()->set_open(true);
        r.mutable_state()->set_built(true);
        fill(r.mutable_state()->mutable_position(), "");
        for (const Breakpoint& b : breakpoints_) *r.mutable_state()->add_breakpoints() = b;
        break;
      case Request::kBeginStep:
        if (faultIs("rebuild") && std::exchange(waits_, false)) dieOfPass();
        inStep_ = true;
        instruction_ = 0;
        fill(r.mutable_position(), "step");
        break;
      case Request::kStep: {
        fault();
        const int to = std::max(0, std::min(size, instruction_ + q.step().count()));
        if (to < instruction_) instruction_ = to;
        advance(to, r.mutable_position());
        fill(r.mutable_position(), "step");
        break;
      }
      case Request::kRunTo: {
        const int to = std::max(0, std::min(size, q.run_to().instruction()));
        if (to < instruction_) instruction_ = to;
        advance(to, r.mutable_position());
        fill(r.mutable_position(), "step");
        break;
      }
      case Request::kRunToBreak: {
        int id = 0, to = instruction_;
        if (q.run_to_break().backwards()) {
          do --to;
          while (to > 0 && !breaksAt(to, &id));
          instruction_ = std::max(0, to);
        } else {
          do ++to;
          while (to < size && !breaksAt(to, &id));
          advance(std::min(to, size), r.mutable_position());
        }
        if (id != 0 && nan_ >= 0 && instruction_ == nan_ + 1 && !q.run_to_break().backwards()) tellOfNan();
        fill(r.mutable_position(), id ? "breakpoint " + std::to_string(id) : "end of step");
        r.mutable_position()->set_breakpoint(id);
        break;
      }
      case Request::kStepPhase: {
        const std::vector<int> borders = {0, model_.firstBackward, model_.firstOptimizer, size};
        int to = q.step_phase().backwards() ? 0 : size;
        for (const int b : borders) {
          if (!q.step_phase().backwards() && b > instruction_) {
            to = b;
            break;
          }
          if (q.step_phase().backwards() && b < instruction_) to = b;
        }
        if (to < instruction_) instruction_ = to;
        advance(to, r.mutable_position());
        fill(r.mutable_position(), "step");
        break;
      }
      case Request::kFinishStep: finish(&r, q); break;
      case Request::kAbandonStep:
        inStep_ = false;
        instruction_ = 0;
        fill(r.mutable_position(), "step");
        break;
      case Request::kRewind:
        step_ = q.rewind().step();
        inStep_ = false;
        instruction_ = 0;
        fill(r.mutable_position(), "step");
        break;
      case Request::kTrain:
        for (std::int64_t i = 0; i < q.train().steps(); ++i) {
          finish(&r, q);
          if (i + 1 < q.train().steps()) {
            r.set_done(false);
            send(r);
          }
        }
        break;
      case Request::kBreakpoints:
        breakpoints_.assign(q.breakpoints().breakpoints().begin(), q.breakpoints().breakpoints().end());
        *r.mutable_breakpoints() = q.breakpoints();
        break;
      case Request::kFetch: fetch(q, &r); break;
      case Request::kWatch:
        watched_.assign(q.watch().values().begin(), q.watch().values().end());
        fill(r.mutable_position(), "step");
        break;
      case Request::kCompareBits: r.mutable_compare()->set_equal(true); break;
      case Request::kRecompute: describeRecompute(q.recompute(), r.mutable_recompute()); break;
      case Request::kPin:
      case Request::kEdit:
      case Request::kSaveTensor:
      case Request::kSaveState:
      case Request::kCancel: break;
      default:
        r.mutable_error()->set_code("unsupported");
        r.mutable_error()->set_message("request: not known to the made-up worker");
    }
    send(r);
  }

  void fetch(const Request& q, Response* r) {
    const int v = q.fetch().value();
    if (v < 0 || v >= model_.graph.values_size()) {
      r->mutable_error()->set_code("not_found");
      r->mutable_error()->set_message("value " + std::to_string(v) + ": not in the graph");
      return;
    }
    const Value& value = model_.graph.values(v);
    auto* t = r->mutable_tensor();
    t->set_value(v);
    t->set_name(value.name());
    t->set_dtype(value.dtype());
    std::vector<std::int64_t> dims, begin, extent;
    for (int i = 0; i < value.dims_size(); ++i) {
      dims.push_back(std::stoll(value.dims(i)));
      t->add_dims(dims.back());
      begin.push_back(i < q.fetch().begin_size() ? q.fetch().begin(i) : 0);
      extent.push_back(i < q.fetch().extent_size() ? q.fetch().extent(i) : dims.back());
      t->add_begin(begin.back());
      t->add_extent(extent.back());
    }
    std::int64_t n = 1;
    for (const auto e : extent) n *= e;
    std::vector<std::int64_t> at(dims.size(), 0);
    for (std::int64_t k = 0; k < n; ++k) {
      std::int64_t flat = 0;
      for (std::size_t i = 0; i < dims.size(); ++i) flat = flat * dims[i] + begin[i] + at[i];
      if (value.dtype() == "int64") {
        const std::int64_t x = flat % 8192;
        t->mutable_data()->append(reinterpret_cast<const char*>(&x), 8);
      } else {
        const auto x = static_cast<float>(element(v, flat));
        t->mutable_data()->append(reinterpret_cast<const char*>(&x), 4);
      }
      for (std::size_t i = dims.size(); i-- > 0;) {
        if (++at[i] < extent[i]) break;
        at[i] = 0;
      }
    }
    statistics(v, t->mutable_statistics());
    t->set_step(step_);
    bool computed = value.role() != NODE_OUTPUT;
    for (int i = 0; i < instruction_ && inStep_; ++i) {
      if (model_.plan.instructions(i).outputs(0).value() == v) computed = true;
    }
    t->set_current(computed);
    if (!computed) {
      t->set_step(step_ - 1);
      if (step_ == 0) {
        t->clear_data();
        t->clear_statistics();
        t->set_unavailable("not computed yet");
      }
    }
  }

  FakeModel model_ = environment("FAKE_NODES", 0) > 0 ? FakeModel::generated(environment("FAKE_NODES", 0))
                                                      : FakeModel(environment("FAKE_BLOCKS", 3));
  std::map<std::string, std::string> options_ = {
      {"constant_folding", "on"}, {"gelu_fusion", "on"}, {"recompute", "off"}, {"layer_norm_fusion", "on"}};
  std::vector<Breakpoint> breakpoints_;
  std::vector<int> watched_;
  bool built_ = false;
  bool inStep_ = false;
  bool waits_ = false;  // an option, for the next step
  std::int64_t step_ = 0;
  int instruction_ = 0;
  std::int64_t clock_ = 1'000'000;
  int nan_ = environment("FAKE_NAN", -1);
};

}  // namespace

int main() { return Worker().run(); }

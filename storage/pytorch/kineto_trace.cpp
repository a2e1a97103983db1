#include "storage/pytorch/kineto_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>
#include <unordered_map>

namespace stepscope::storage {
namespace {

using Json = nlohmann::json;
constexpr std::string_view kModule = "nn.Module: ", kEvaluate = "autograd::engine::evaluate_function: ";

struct TraceSpan {
  enum class Kind { kOp, kModule, kOptimizer, kLaunch } kind = Kind::kOp;
  std::string thread, name;
  std::int64_t begin = 0, end = 0;
  std::int64_t sequence = -1, correlation = -1;
  const Json* args = nullptr;
};
struct StepWindow {
  std::int64_t begin = 0, end = 0;
};
struct TraceSpans {
  std::vector<TraceSpan> all;  // by thread, then begin, the outer first
  std::vector<StepWindow> profiled, optimizerSteps;
  std::unordered_map<std::int64_t, std::int64_t> kernelNs;  // by correlation
};

std::int64_t integer(const Json& args, const char* name) {
  const auto found = args.find(name);
  return found != args.end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
}

// Sums of durations have to fit: ten million of a quarter of an hour do.
constexpr double kLatest = 4e15, kLongest = 1e9;  // microseconds
std::int64_t nanoseconds(const Json& event, const char* name, double most) {
  const auto found = event.find(name);
  const double us = found != event.end() && found->is_number() ? found->get<double>() : 0;
  return std::abs(us) < most ? std::llround(us * 1e3) : 0;
}

std::string text(const Json& event, const char* name) {
  const auto found = event.find(name);
  if (found == event.end()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump();
}

TraceSpans spansOf(const Json& events) {
  static const Json kNone = Json::object();
  TraceSpans out;
  for (const Json& event : events) {
    if (!event.is_object() || text(event, "ph") != "X") continue;
    const std::string category = text(event, "cat");
    const auto found = event.find("args");
    const Json& args = found != event.end() && found->is_object() ? *found : kNone;
    TraceSpan span{TraceSpan::Kind::kOp,
                   text(event, "pid") + "/" + text(event, "tid"),
                   text(event, "name"),
                   nanoseconds(event, "ts", kLatest),
                   0,
                   -1,
                   -1,
                   &args};
    span.end = span.begin + std::max<std::int64_t>(0, nanoseconds(event, "dur", kLongest));
    if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset") {
      out.kernelNs[integer(args, "correlation")] += span.end - span.begin;
      continue;
    }
    if (category == "user_annotation") {
      if (span.name.starts_with("ProfilerStep#")) out.profiled.push_back({span.begin, span.end});
      if (!span.name.starts_with("Optimizer.")) continue;
      if (span.name.starts_with("Optimizer.step")) out.optimizerSteps.push_back({span.begin, span.end});
      span.kind = TraceSpan::Kind::kOptimizer;
    } else if (category == "python_function") {
      if (!span.name.starts_with(kModule)) continue;
      span.kind = TraceSpan::Kind::kModule;
    } else if (category == "cuda_runtime" || category == "cuda_driver") {
      span.kind = TraceSpan::Kind::kLaunch;
      span.correlation = integer(args, "correlation");
    } else if (category == "cpu_op") {
      span.sequence = integer(args, "Sequence number");
    } else {
      continue;
    }
    out.all.push_back(std::move(span));
  }
  std::ranges::stable_sort(out.all, [](const TraceSpan& a, const TraceSpan& b) {
    return std::tie(a.thread, a.begin, b.end) < std::tie(b.thread, b.begin, a.end);
  });
  return out;
}

std::vector<StepWindow> windowsOf(const TraceSpans& spans) {
  if (!spans.profiled.empty()) return spans.profiled;
  std::int64_t begin = spans.all.front().begin, end = begin;
  for (const TraceSpan& s : spans.all) begin = std::min(begin, s.begin), end = std::max(end, s.end);
  std::vector<StepWindow> steps = spans.optimizerSteps, out;
  std::ranges::sort(steps, {}, &StepWindow::begin);
  for (const StepWindow& step : steps) {
    out.push_back({begin, step.end});
    begin = step.end;
  }
  if (out.empty()) out.push_back({begin, end});
  return out;
}

std::vector<std::vector<std::int64_t>> shapesOf(const Json& args) {
  std::vector<std::vector<std::int64_t>> out;
  const auto found = args.find("Input Dims");
  if (found == args.end() || !found->is_array()) return out;
  for (const Json& one : *found) {
    std::vector<std::int64_t>& shape = out.emplace_back();
    if (one.is_array())
      for (const Json& extent : one)
        if (extent.is_number_integer()) shape.push_back(extent.get<std::int64_t>());
  }
  return out;
}

// What one step is made of: the spans of each thread are nested, so a stack of those that are open says what is around each.
class StepReader {
 public:
  StepReader(const TraceSpans& spans, StepWindow window) : spans_(spans), window_(window) {}

  void read(KinetoTrace& out) {
    std::vector<std::pair<std::int64_t, TraceOp>> ops;  // with their begin
    struct Backward {
      std::int64_t begin, sequence, ns;
    };
    std::vector<Backward> backward;
    std::map<std::int64_t, std::pair<std::int64_t, std::size_t>>
        owner;  // sequence number -> begin and op that made the node
    std::vector<const TraceSpan*> open;
    std::vector<std::int64_t*> clocks;  // of `open`: where kernels launched within count
    std::int64_t optimizerNs = 0;
    // Ops are addressed while the list grows, so their times are collected apart.
    std::vector<std::int64_t> opNs(spans_.all.size(), 0), backwardNs(spans_.all.size(), 0);
    std::string thread;
    std::ptrdiff_t topOp = -1, topBackward = -1;
    std::int64_t topEnd = 0;
    for (const TraceSpan& span : spans_.all) {
      if (span.thread != thread) open.clear(), thread = span.thread, topEnd = 0;
      if (span.begin < window_.begin || span.begin >= window_.end) continue;
      std::erase_if(open, [&](const TraceSpan* s) { return s->end <= span.begin; });
      const bool inTop = span.begin < topEnd;
      if (!inTop) topOp = topBackward = -1;
      const bool inOptimizer =
          std::ranges::any_of(open, [](const TraceSpan* s) { return s->kind == TraceSpan::Kind::kOptimizer; });
      if (span.kind == TraceSpan::Kind::kLaunch) {
        const auto kernel = spans_.kernelNs.find(span.correlation);
        if (kernel == spans_.kernelNs.end()) continue;
        if (inOptimizer)
          optimizerNs += kernel->second;
        else if (topBackward >= 0)
          backwardNs[static_cast<std::size_t>(topBackward)] += kernel->second;
        else if (topOp >= 0)
          opNs[static_cast<std::size_t>(topOp)] += kernel->second;
        continue;
      }
      if (span.kind == TraceSpan::Kind::kOptimizer && !inOptimizer && !out.kernels &&
          span.name.starts_with("Optimizer.step"))
        optimizerNs += span.end - span.begin;
      if (span.kind == TraceSpan::Kind::kOp && !inOptimizer) {
        if (!inTop) {
          topEnd = span.end;
          if (span.name.starts_with(kEvaluate)) {
            topBackward = std::ssize(backward);
            backward.push_back({span.begin, span.sequence, out.kernels ? 0 : span.end - span.begin});
          } else {
            topOp = std::ssize(ops);
            TraceOp op{span.name, {}, shapesOf(*span.args), out.kernels ? 0 : span.end - span.begin, 0};
            for (const TraceSpan* around : open)
              if (around->kind == TraceSpan::Kind::kModule) op.module = around->name.substr(kModule.size());
            out.shapes = out.shapes || !op.shapes.empty();
            out.modules = out.modules || !op.module.empty();
            ops.emplace_back(span.begin, std::move(op));
          }
        }
        // An operator without a gradient shows the number that the next one takes: the last that shows it made the node.
        if (topOp >= 0 && span.sequence >= 0) {
          auto& made = owner[span.sequence];
          if (made.first <= span.begin) made = {span.begin, static_cast<std::size_t>(topOp)};
        }
      }
      open.push_back(&span);
    }
    for (std::size_t i = 0; i < ops.size(); ++i) ops[i].second.ns += opNs[i];
    std::vector<std::size_t> order(backward.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](std::size_t i) { return backward[i].begin; });
    std::ptrdiff_t before = -1;
    for (const std::size_t i : order) {
      if (backward[i].sequence >= 0) {
        const auto found = owner.find(backward[i].sequence);
        before = found == owner.end() ? -1 : static_cast<std::ptrdiff_t>(found->second.second);
      }
      const std::int64_t ns = backward[i].ns + backwardNs[i];
      if (before >= 0)
        ops[static_cast<std::size_t>(before)].second.backwardNs += ns;
      else
        out.otherBackwardNs += ns;
    }
    std::ranges::stable_sort(ops, {}, [](const auto& op) { return op.first; });
    for (auto& op : ops) out.ops.push_back(std::move(op.second));
    out.stepNs = window_.end - window_.begin;
    out.optimizerNs = optimizerNs;
  }

 private:
  const TraceSpans& spans_;
  StepWindow window_;
};

}  // namespace

Result<std::string> readForeignFile(const std::filesystem::path& path, std::int64_t most) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return fail(ErrorCode::kNotFound, fmt::format("file '{}': not there; expected a file", path.string()));
  const auto size = std::filesystem::file_size(path, error);
  if (!error && size > static_cast<std::uintmax_t>(most))
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("file '{}': {} bytes; expected at most {}", path.string(), size, most));
  std::ifstream in(path, std::ios::binary);
  std::ostringstream contents;
  contents << in.rdbuf();
  if (!in || error) return fail(ErrorCode::kIo, fmt::format("file '{}': cannot be read", path.string()));
  return std::move(contents).str();
}

Result<KinetoTrace> readKinetoTrace(const std::filesystem::path& path) {
  SS_STORE_ASSIGN(const std::string contents, readForeignFile(path, kMostTraceBytes));
  const auto foreign = [&](std::string_view found) {
    return fail(ErrorCode::kForeign, fmt::format("trace '{}': {}; expected what torch.profiler's export_chrome_trace writes",
                                                 path.string(), found));
  };
  if (contents.starts_with("\x1f\x8b")) return foreign("compressed by gzip (gunzip it first)");
  const Json trace = Json::parse(contents, nullptr, false);
  if (trace.is_discarded()) return foreign("no JSON");
  const auto events = trace.is_object() ? trace.find("traceEvents") : trace.end();
  if (!trace.is_object() || events == trace.end() || !events->is_array()) return foreign("has no list 'traceEvents'");
  const TraceSpans spans = spansOf(*events);
  if (spans.all.empty())
    return foreign("has no operator (a schedule without repeat=1 clears it when its next cycle begins)");
  std::vector<StepWindow> windows = windowsOf(spans);
  std::ranges::sort(windows, {}, [](const StepWindow& w) { return w.end - w.begin; });
  KinetoTrace out;
  out.steps = std::ssize(windows);
  out.kernels = !spans.kernelNs.empty();
  StepReader(spans, windows[(windows.size() - 1) / 2]).read(out);
  if (out.ops.empty()) return foreign("has no forward operator in its step");
  return out;
}

}  // namespace stepscope::storage

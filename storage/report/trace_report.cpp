#include "storage/report/trace_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "engine/snapshot/extent.h"
#include "storage/bounded.h"
#include "storage/json_values.h"
#include "storage/rank_steps.h"
#include "storage/report/trace_device.h"
#include "storage/report/trace_writer.h"
#include "storage/sqlite.h"
#include "storage/weights_mark.h"

namespace stepscope::storage {
namespace {

constexpr std::int64_t kMaxSpans = 400'000;
constexpr int kStartUpThread = 1000, kRankThread = 2000, kRankRows = 100;

// Whether row 1 + n of the spans is stream n of a device (engine/exec/device_times.h).
bool hasStreams(const ReportData& data) {
  const std::string& device = data.run.device;
  return device != "cpu" && !device.starts_with("mirror");
}

// Where to draw the arrow of a backward operator from: forward node of each node of the newest graph.
Result<std::unordered_map<int, int>> readForwardNodes(const Project& project, std::int64_t run) {
  SS_STORE_ASSIGN(Statement rows,
                  project.connection().prepare("SELECT id, forward FROM nodes WHERE run = ? AND forward >= 0"));
  rows.bind(run);
  std::unordered_map<int, int> result;
  while (rows.next()) result[static_cast<int>(rows.integer(0))] = static_cast<int>(rows.integer(1));
  SS_STORE_TRY(rows.status());
  return result;
}

// "Input Dims" and "Input type" of each instruction, as Kineto writes them; those of an omitted operand are empty.
std::vector<std::string> readOperands(const Project& project, const ReportData& data) {
  if (!data.plan) return {};
  const auto graph = readGraph(project, data.run.id);
  if (!graph) return {};  // a run whose graphs were not kept still has its times
  std::unordered_map<int, const snapshot::Value*> values;
  for (const snapshot::Value& value : graph->values()) values.emplace(value.id(), &value);
  std::vector<std::string> texts;
  for (const snapshot::Instruction& instruction : data.plan->instructions()) {
    std::string dims, types;
    for (const snapshot::Operand& operand : instruction.inputs()) {
      const auto found = values.find(operand.value());
      std::string shape;
      if (found != values.end())
        for (const std::string& dim : found->second->dims()) {
          const auto extent = extentOf(dim);
          shape += (shape.empty() ? "" : ", ") + (extent ? std::to_string(*extent) : jsonText(dim));
        }
      dims += fmt::format("{}[{}]", dims.empty() ? "" : ", ", shape);
      types += (types.empty() ? "" : ", ") + jsonText(found != values.end() ? found->second->dtype() : "");
    }
    texts.push_back(fmt::format(R"(, "Input Dims": [{}], "Input type": [{}])", dims, types));
  }
  return texts;
}

void writeStartUp(const ReportData& data, TraceWriter& trace) {
  for (const PhaseRow& phase : data.phases)
    trace.complete("user_annotation", phase.name, kStartUpThread, phase.beginNs, phase.ns,
                   fmt::format(R"("count": {}, "peak bytes": {}{})", phase.count, phase.peakBytes,
                               phase.error.empty() ? "" : fmt::format(R"(, "error": {})", jsonText(phase.error))));
}

// Members of "args" that are the same in every step, by instruction.
std::vector<std::string> readFacts(const Project& project, const ReportData& data) {
  std::vector<std::string> operands = readOperands(project, data);
  operands.resize(data.timing.instructions.size());
  std::vector<std::string> facts;
  for (const InstructionTime& row : data.timing.instructions)
    facts.push_back(fmt::format(
        R"(, "label": {}, "phase": {}, "module": {}, "kernel": {}, "bytes read": {}, "bytes written": {}, "flops": {}{})",
        jsonText(row.label), jsonText(row.phase), jsonText(row.modulePath), jsonText(row.implementation), row.bytesRead,
        row.bytesWritten, std::isfinite(row.flops) ? row.flops : 0.0, operands[facts.size()]));
  return facts;
}

class StepTracer {
 public:
  StepTracer(const ReportData& data, const std::unordered_map<int, int>& forward, const std::vector<std::string>& facts,
             TraceWriter& trace)
      : data_(data), forward_(forward), facts_(facts), trace_(trace) {}

  void write(const StepRow& step, const std::vector<Span>& spans, const snapshot::DeviceWork& work) {
    trace_.complete("user_annotation", fmt::format("ProfilerStep#{}", step.step), 1, step.beginNs, step.ns,
                    fmt::format(R"("step": {}, "samples": {}, "tokens": {})", step.step, step.samples, step.tokens));
    if (step.loss) trace_.counter("loss", "loss", step.beginNs + step.ns, *step.loss);
    trace_.counter("memory", "peak bytes", step.beginNs, static_cast<double>(step.peakBytes));
    // Instruction numbers belong to a plan; only the newest plan's table is at hand.
    const bool known = !data_.timing.instructions.empty() && step.plan == data_.timing.instructions.front().plan;
    writePhases(spans, known);
    std::unordered_map<int, const Span*> firstOf;
    const DeviceTracer device(work, correlation_, trace_);
    device.writeBeside();
    for (const Span& span : spans) {
      const int forwardNode = forwardOf(span);
      writeSpan(span, known ? find(span) : nullptr, forwardNode, device);
      if (forwardNode >= 0 && firstOf.contains(forwardNode)) writeArrow(*firstOf[forwardNode], span);
      if (forwardNode < 0) firstOf.try_emplace(span.node, &span);
    }
  }

 private:
  const InstructionTime* find(const Span& span) const {
    const auto& rows = data_.timing.instructions;
    return span.instruction >= 0 && span.instruction < static_cast<int>(rows.size())
               ? &rows[static_cast<std::size_t>(span.instruction)]
               : nullptr;
  }

  int forwardOf(const Span& span) const {
    const auto found = forward_.find(span.node);
    return found == forward_.end() ? -1 : found->second;
  }

  // One annotation around each stretch of the same phase on the main thread; recomputed nodes belong to the backward phase.
  void writePhases(const std::vector<Span>& spans, bool known) {
    std::string phase;
    std::int64_t begin = 0, end = 0;
    const auto close = [&] {
      if (!phase.empty()) trace_.complete("user_annotation", phase, 1, begin, end - begin, "");
    };
    for (const Span& span : spans) {
      const InstructionTime* row = known && span.thread == 0 ? find(span) : nullptr;
      if (!row) continue;
      const std::string now = row->phase == "recompute" ? "backward" : row->phase;
      if (now != phase) {
        close();
        phase = now;
        begin = span.beginNs;
      }
      end = std::max(span.beginNs + span.ns, begin);
    }
    close();
  }

  void writeSpan(const Span& span, const InstructionTime* row, int forwardNode, const DeviceTracer& device) {
    ++eventIndex_;
    std::string arguments =
        fmt::format(R"("External id": {}, "Ev Idx": {}, "instruction": {}, "node": {}{}, "Sequence number": {})",
                    eventIndex_, eventIndex_, span.instruction, span.node, forwardNode >= 0 ? R"(, "Fwd thread id": 1)" : "",
                    forwardNode >= 0 ? forwardNode : span.node);
    if (row) arguments += facts_[static_cast<std::size_t>(span.instruction)];
    const bool onStream = span.thread > 0 && hasStreams(data_);
    const std::string name = row ? row->op : fmt::format("instruction {}", span.instruction);
    if (onStream && device.has(span.instruction)) {
      const auto [called, returned] = device.calls(span.instruction);
      if (called > 0) trace_.complete("cpu_op", name, 1, called, returned - called, arguments);
      device.write(span.instruction, row ? row->op : name, eventIndex_);
      return;
    }
    if (onStream)
      arguments += fmt::format(R"(, "device": 0, "stream": {}, "correlation": {})", span.thread - 1, ++correlation_);
    // As Kineto writes what ran on a GPU: a kernel by its name, a copy by its direction.
    if (onStream && row && row->implementation == "copy")
      trace_.complete("gpu_memcpy", row->label.ends_with("to host") ? "Memcpy DtoH" : "Memcpy HtoD", span.thread + 1,
                      span.beginNs, span.ns, arguments);
    else if (onStream)
      trace_.complete("kernel", row ? fmt::format("{}: {}", row->op, row->implementation) : name, span.thread + 1,
                      span.beginNs, span.ns, arguments);
    else
      trace_.complete("cpu_op", name, span.thread + 1, span.beginNs, span.ns, arguments);
  }

  void writeArrow(const Span& from, const Span& to) {
    ++flowId_;
    trace_.flow('s', "fwdbwd", flowId_, from.thread + 1, from.beginNs);
    trace_.flow('f', "fwdbwd", flowId_, to.thread + 1, to.beginNs);
  }

  const ReportData& data_;
  const std::unordered_map<int, int>& forward_;
  const std::vector<std::string>& facts_;  // by instruction
  TraceWriter& trace_;
  std::int64_t eventIndex_ = 0, flowId_ = 0, correlation_ = 0;
};

// Each rank has rows of its own, on the clock of rank 0: its steps, and in them its instructions; its collectives; then its
// other threads or streams. The instructions of rank 0 stand in the first rows of the trace.
class RankTracer {
 public:
  RankTracer(const ReportData& data, TraceWriter& trace) : data_(data), trace_(trace) {}

  Status write(const Project& project, const StepRow& step) {
    SS_STORE_ASSIGN(const snapshot::StepRanks ranks, readRanksOf(project, step.id));
    const bool known = !data_.timing.instructions.empty() && step.plan == data_.timing.instructions.front().plan;
    for (const snapshot::RankStep& rank : ranks.ranks()) {
      if (rank.begin_ns() <= 0) continue;  // a file of a version that does not say when
      const int row = kRankThread + kRankRows * rank.rank();
      if (known_.insert(rank.rank()).second) {
        name(row, fmt::format("rank {}", rank.rank()));
        name(row + 1, fmt::format("rank {}: collectives", rank.rank()));
      }
      trace_.complete("user_annotation", fmt::format("rank {}: step {}", rank.rank(), step.step), row, rank.begin_ns(),
                      rank.ns(), fmt::format(R"("exposed ns": {}, "sent bytes": {})", rank.exposed_ns(), rank.sent_bytes()));
      for (const snapshot::InstructionSpan& span : rank.spans()) writeSpan(span, rank.rank(), step, row, known);
      for (const snapshot::RankCollective& c : rank.collectives()) writeCollective(c, rank.rank(), step, row + 1);
    }
    return {};
  }

 private:
  void name(int row, const std::string& text) {
    trace_.metadata("thread_name", row, fmt::format(R"("name": "{}")", text));
    trace_.metadata("thread_sort_index", row, fmt::format(R"("sort_index": {})", row));
  }

  void writeSpan(const snapshot::InstructionSpan& span, int rank, const StepRow& step, int row, bool known) {
    const int thread = std::clamp(span.thread(), 0, kRankRows - 3);
    const int own = thread == 0 ? row : row + 1 + thread;
    if (thread > 0 && threads_.insert(own).second)
      name(own, fmt::format("rank {}: {} {}", rank, hasStreams(data_) ? "stream" : "worker thread",
                            hasStreams(data_) ? thread - 1 : thread));
    const std::int64_t ns = boundedSize(saturatingAdd(span.end_ns(), -bounded(span.begin_ns())));
    const auto& rows = data_.timing.instructions;
    const auto at = static_cast<std::size_t>(span.instruction());
    std::string arguments = fmt::format(R"("rank": {}, "step": {}, "instruction": {}, "node": {})", rank, step.step,
                                        span.instruction(), span.node());
    if (!known || span.instruction() < 0 || at >= rows.size())
      return trace_.complete("cpu_op", fmt::format("instruction {}", span.instruction()), own, span.begin_ns(), ns,
                             arguments);
    const InstructionTime& told = rows[at];
    arguments += fmt::format(R"(, "label": {}, "phase": {}, "module": {}, "kernel": {})", jsonText(told.label),
                             jsonText(told.phase), jsonText(told.modulePath), jsonText(told.implementation));
    trace_.complete("cpu_op", told.op, own, span.begin_ns(), ns, arguments);
  }

  void writeCollective(const snapshot::RankCollective& c, int rank, const StepRow& step, int row) {
    trace_.complete("collective", "wait: " + c.node(), row, c.begin_ns(), c.wait_ns(),
                    fmt::format(R"("rank": {}, "step": {}, "exposed ns": {})", rank, step.step, c.exposed_ns()));
    trace_.complete("collective", c.node(), row, saturatingAdd(c.begin_ns(), c.wait_ns()), c.move_ns(),
                    fmt::format(R"("rank": {}, "step": {}, "sent bytes": {})", rank, step.step, c.sent_bytes()));
  }

  const ReportData& data_;
  TraceWriter& trace_;
  std::set<int> known_, threads_;  // ranks; rows
};

}  // namespace

Status writeTrace(const Project& project, const ReportData& data, std::ostream& out) {
  SS_STORE_ASSIGN(const auto forward, readForwardNodes(project, data.run.id));
  const std::vector<StepRow>& steps = data.steps;
  const auto processes = static_cast<std::int64_t>(std::max<std::size_t>(1, data.ranks.ranks.size()));
  const std::int64_t perStep =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(data.timing.instructions.size()) * processes);
  const std::size_t kept =
      std::min<std::size_t>(steps.size(), static_cast<std::size_t>(std::max<std::int64_t>(1, kMaxSpans / perStep)));
  const std::size_t first = steps.size() - kept;

  std::int64_t base = kept > 0 ? steps[first].beginNs : 0;
  for (const PhaseRow& phase : data.phases) base = std::min(base == 0 ? phase.beginNs : base, phase.beginNs);
  // HTA looks for the rank with a blank after the colon, on one line.
  out << fmt::format(
      "{{\n \"schemaVersion\": 1,\n \"deviceProperties\": [],\n \"distributedInfo\": {{\"backend\": \"\", \"rank\": 0, "
      "\"world_size\": {}}},\n"
      " \"displayTimeUnit\": \"ms\",\n \"baseTimeNanoseconds\": {},\n \"traceName\": {},\n \"otherData\": {{\"program\": "
      "\"stepscope\", "
      "\"run\": {}, \"weights\": {}, \"steps_left_out\": {}}},\n \"traceEvents\": [",
      processes, base, jsonText(data.model + ".trace.json"), data.run.id, jsonText(data.run.weights), first);
  TraceWriter trace(base, out);
  int threads = 1;
  RankTracer ranks(data, trace);
  const std::vector<std::string> facts = readFacts(project, data);
  StepTracer tracer(data, forward, facts, trace);
  writeStartUp(data, trace);
  const bool onDevice = !data.kernels.rung.empty() || !data.kernels.rows.empty();
  for (std::size_t i = first; i < steps.size() && out; ++i) {
    SS_STORE_ASSIGN(const std::vector<Span> spans, readSpans(project, steps[i].id));
    for (const Span& span : spans) threads = std::max(threads, std::min(span.thread, 998) + 1);
    snapshot::DeviceWork work;
    if (onDevice) {
      SS_STORE_ASSIGN(work, readDeviceWork(project, steps[i].id));
    }
    tracer.write(steps[i], spans, work);
    if (!data.ranks.ranks.empty()) SS_STORE_TRY(ranks.write(project, steps[i]));
  }
  trace.metadata("process_name", 0, fmt::format(R"("name": {})", jsonText("stepscope " + data.model)));
  if (const std::string mark = weightsMark(data.run.weights); !mark.empty())
    trace.metadata("process_labels", 0, fmt::format(R"("labels": {})", jsonText("weights: " + mark)));
  trace.metadata("process_sort_index", 0, R"("sort_index": 0)");
  if (hasStreams(data)) DeviceTracer::nameRows(trace);
  trace.metadata("thread_name", kStartUpThread, R"("name": "start-up")");
  trace.metadata("thread_sort_index", kStartUpThread, R"("sort_index": 0)");
  for (int t = 0; t < threads; ++t) {
    trace.metadata("thread_name", t + 1,
                   fmt::format(R"("name": "{}")", t == 0             ? std::string("step")
                                                  : hasStreams(data) ? fmt::format("stream {}", t - 1)
                                                                     : fmt::format("worker thread {}", t)));
    trace.metadata("thread_sort_index", t + 1, fmt::format(R"("sort_index": {})", t + 1));
  }
  trace.flush();
  out << "\n ]\n}\n";
  return {};
}

}  // namespace stepscope::storage

#include "storage/report/csv_report.h"

#include <fmt/format.h>

#include <cmath>

#include "storage/report/format.h"

namespace stepscope::storage {
namespace {

std::string field(const std::string& text) { return csvCell(text); }
std::string field(std::int64_t value) { return fmt::format("{}", value); }
std::string field(int value) { return fmt::format("{}", value); }
std::string field(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return fmt::format("{}", value);
}
std::string field(const std::optional<double>& value) { return value ? field(*value) : std::string(); }

template <typename First, typename... Rest>
std::string line(const First& first, const Rest&... rest) {
  std::string text = field(first);
  ((text += ',', text += field(rest)), ...);
  return text + "\r\n";
}

constexpr std::string_view kStatsColumns = "n,total_ns,mean_ns,median_ns,p95_ns,min_ns,max_ns,share";

template <typename... Fields>
std::string statsLine(const TimeStats& t, double share, const Fields&... fields) {
  return line(fields..., t.n, t.total, t.mean, t.median, t.p95, t.min, t.max, share);
}

}  // namespace

std::string stepsCsv(const ReportData& data) {
  std::string text =
      "step,loss,learning_rate,gradient_norm,updated,samples,tokens,begin_ns,ns,planned_bytes,peak_bytes,warm_up,batch\r\n";
  for (const StepRow& s : data.steps)
    text += line(s.step, s.loss, s.learningRate, s.gradientNorm, s.updated ? 1 : 0, s.samples, s.tokens, s.beginNs, s.ns,
                 s.plannedBytes, s.peakBytes, s.warmUp ? 1 : 0, s.batch);
  return text;
}

std::string opsCsv(const ReportData& data) {
  std::string text = fmt::format("op,phase,category,instructions,{}\r\n", kStatsColumns);
  for (const OpTime& op : data.timing.ops)
    text += statsLine(op.time, op.share, op.op, op.phase, op.category, op.instructions);
  return text;
}

std::string instructionsCsv(const ReportData& data) {
  std::string text = fmt::format(
      "position,node,op,label,phase,module_path,implementation,bytes_read,bytes_written,flops,{}\r\n", kStatsColumns);
  for (const InstructionTime& i : data.timing.instructions)
    text += statsLine(i.time, i.share, i.position, i.node, i.op, i.label, i.phase, i.modulePath, i.implementation,
                      i.bytesRead, i.bytesWritten, i.flops);
  return text;
}

std::string rooflineCsv(const ReportData& data) {
  std::string text =
      "position,node,op,label,phase,category,implementation,flops,bytes,core_cache_bytes,shared_cache_bytes,memory_bytes,intensity,roof_ns,bound_by,executions,"
      "median_ns,share\r\n";
  for (const RooflineRow& r : data.roofline.rows) {
    const InstructionTime& i = data.timing.instructions[r.instruction];
    text += line(i.position, i.node, i.op, i.label, i.phase, i.category, i.implementation, i.flops, r.bytes, r.coreCacheBytes, r.sharedCacheBytes, r.memoryBytes, r.intensity,
                 r.roofNs, r.boundBy, i.time.n, i.time.n > 0 ? fmt::format("{}", i.time.median) : std::string(), r.share);
  }
  return text;
}

std::string phasesCsv(const ReportData& data) {
  std::string text = "depth,name,begin_ns,ns,peak_bytes,count,error\r\n";
  for (const PhaseRow& p : data.phases) text += line(p.depth, p.name, p.beginNs, p.ns, p.peakBytes, p.count, p.error);
  return text;
}

}  // namespace stepscope::storage

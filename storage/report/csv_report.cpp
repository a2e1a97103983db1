#include "storage/report/csv_report.h"

#include <fmt/format.h>

#include "engine/snapshot/csv.h"
#include "storage/weights_mark.h"

namespace stepscope::storage {
namespace {

// One line per row; where the weights are not the model's, every line says so.
class MarkedCsv {
 public:
  MarkedCsv(const ReportData& data, std::string_view header)
      : mark_(weightsMark(data.run.weights)), csv_(std::string(header) + (mark_.empty() ? "" : ",weights")) {}
  template <typename... Fields>
  void line(const Fields&... fields) {
    mark_.empty() ? csv_.line(fields...) : csv_.line(fields..., mark_);
  }
  template <typename... Fields>
  void statsLine(const TimeStats& t, double share, const Fields&... fields) {
    line(fields..., t.n, t.total, t.mean, t.median, t.p95, t.min, t.max, share);
  }
  std::string take() { return std::move(csv_).take(); }

 private:
  std::string mark_;
  CsvTable csv_;
};

constexpr std::string_view kStatsColumns = "n,total_ns,mean_ns,median_ns,p95_ns,min_ns,max_ns,share";

}  // namespace

std::string stepsCsv(const ReportData& data) {
  MarkedCsv csv(data,
                "step,loss,learning_rate,gradient_norm,updated,samples,tokens,begin_ns,ns,planned_bytes,peak_bytes,warm_up,"
                "stopped_in,cpu_ns,wait_ns,speed,batch,trained_tokens,padding_tokens");
  for (std::size_t i = 0; i < data.steps.size(); ++i) {
    const StepRow& s = data.steps[i];
    csv.line(s.step, s.loss, s.learningRate, s.gradientNorm, s.updated ? 1 : 0, s.samples, s.tokens, s.beginNs, s.ns,
             s.plannedBytes, s.peakBytes, s.warmUp ? 1 : 0, s.stoppedIn ? 1 : 0, s.cpuNs, s.waitNs, s.speed, s.batch,
             data.tokens[i].trained, data.tokens[i].padding);
  }
  return csv.take();
}

std::string opsCsv(const ReportData& data) {
  MarkedCsv csv(data, fmt::format("op,phase,category,instructions,{}", kStatsColumns));
  for (const OpTime& op : data.timing.ops) csv.statsLine(op.time, op.share, op.op, op.phase, op.category, op.instructions);
  return csv.take();
}

std::string instructionsCsv(const ReportData& data) {
  MarkedCsv csv(data,
                fmt::format("position,node,op,label,phase,module_path,implementation,bytes_read,bytes_written,flops,{}",
                            kStatsColumns));
  for (const InstructionTime& i : data.timing.instructions)
    csv.statsLine(i.time, i.share, i.position, i.node, i.op, i.label, i.phase, i.modulePath, i.implementation, i.bytesRead,
                  i.bytesWritten, i.flops);
  return csv.take();
}

std::string rooflineCsv(const ReportData& data) {
  MarkedCsv csv(
      data,
      "position,node,op,label,phase,category,implementation,flops,bytes,core_cache_bytes,shared_cache_bytes,memory_"
      "bytes,intensity,roof_ns,bound_by,executions,"
      "median_ns,share,measured_bytes");
  for (const RooflineRow& r : data.roofline.rows) {
    const InstructionTime& i = data.timing.instructions[r.instruction];
    csv.line(i.position, i.node, i.op, i.label, i.phase, i.category, i.implementation, i.flops, r.bytes, r.coreCacheBytes,
             r.sharedCacheBytes, r.memoryBytes, r.intensity, r.roofNs, r.boundBy, i.time.n,
             i.time.n > 0 ? fmt::format("{}", i.time.median) : std::string(), r.share,
             r.measuredBytes ? fmt::format("{}", *r.measuredBytes) : std::string());
  }
  return csv.take();
}

std::string phasesCsv(const ReportData& data) {
  MarkedCsv csv(data, "depth,name,begin_ns,ns,peak_bytes,count,error");
  for (const PhaseRow& p : data.phases) csv.line(p.depth, p.name, p.beginNs, p.ns, p.peakBytes, p.count, p.error);
  return csv.take();
}

}  // namespace stepscope::storage

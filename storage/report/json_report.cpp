#include "storage/report/json_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/snapshot/extent.h"
#include "storage/json_values.h"
#include "storage/names.h"
#include "storage/report/format.h"
#include "storage/report/json_lines.h"

namespace stepscope::storage {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json orNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <typename Rows, typename Make>
Json list(const Rows& rows, Make make) {
  Json array = Json::array();
  for (const auto& row : rows) array.push_back(make(row));
  return array;
}

template <typename Strings>
Json texts(const Strings& strings) {
  return list(strings, [](const auto& text) { return Json(text); });
}

Json runJson(const ReportData& data) {
  const RunRow& r = data.run;
  return {{"id", r.id},
          {"name", r.name},
          {"model", data.model},
          {"device", r.device},
          {"precision", r.precision},
          {"threads", r.threads},
          {"seed", r.seed},
          {"optimizer", r.optimizer},
          {"loss", r.lossName},
          {"weights", r.weights},
          {"status", r.status},
          {"message", r.message},
          {"started", r.startedAt},
          {"ended", orNull(r.endedAt)},
          {"steps", r.steps},
          {"first_loss", orNull(r.firstLoss)},
          {"last_loss", orNull(r.lastLoss)}};
}

// Of the steps that recorded some.
JsonLines statisticsLines(const ReportData& data) {
  JsonLines lines;
  for (const auto& [step, values] : data.statistics) {
    for (const snapshot::RecordedStatistics& v : values) {
      const snapshot::TensorStatistics& s = v.statistics();
      lines.begin();
      lines.member("step", step);
      lines.member("kind", v.kind());
      lines.member("of", v.of());
      lines.member("value", v.name());
      lines.member("elements", s.count());
      lines.member("norm", s.norm());
      lines.member("mean", s.mean());
      lines.member("std", s.std());
      lines.member("min", s.min());
      lines.member("max", s.max());
      lines.member("nan", s.nan());
      lines.member("inf", s.inf());
      lines.end();
    }
  }
  return lines;
}

Json machineJson(const snapshot::MachineInfo& m) {
  return {{"cpu", m.cpu()},
          {"cores", m.cores()},
          {"cpu_features", texts(m.cpu_features())},
          {"memory_bytes", m.memory_bytes()},
          {"gpu", m.gpu()},
          {"gpu_note", m.gpu_note()},
          {"version", m.version()},
          {"libraries", texts(m.libraries())}};
}

Json dimsJson(const auto& dims) {
  return list(dims, [](const std::string& dim) {
    const auto extent = extentOf(dim);
    return extent ? Json(*extent) : Json(dim);
  });
}

// What an option whose default is a number has is one; the values of others are texts.
Json settingJson(const ReportData& data, const std::string& option, const std::string& value) {
  const auto row = std::ranges::find(data.options, option, &OptionRow::name);
  if (row == data.options.end()) return value;
  const Json usual = Json::parse(row->defaultValue, nullptr, false), found = Json::parse(value, nullptr, false);
  return usual.is_number() && found.is_number() ? found : Json(value);
}

Json inputJson(const snapshot::InputInfo& i) {
  return {
      {"name", i.name()}, {"dtype", i.dtype()}, {"dims", dimsJson(i.dims())}, {"role", i.role()}, {"reason", i.reason()}};
}

Json modelJson(const snapshot::ModelInfo& m) {
  Json opsets = Json::object();
  for (const auto& [domain, version] : std::map<std::string, int>(m.opsets().begin(), m.opsets().end()))
    opsets[domain] = version;
  return {{"file_bytes", m.file_bytes()},
          {"producer", m.producer()},
          {"ir_version", m.ir_version()},
          {"opsets", opsets},
          {"nodes", m.node_count()},
          {"functions", m.function_count()},
          {"parameters", m.parameter_count()},
          {"inputs", list(m.inputs(), inputJson)},
          {"outputs", list(m.outputs(), inputJson)},
          {"ops", list(m.ops(), [](const snapshot::OpCount& o) {
             return Json{{"domain", o.domain()},
                         {"op", o.op()},
                         {"count", o.count()},
                         {"has_gradient", o.has_gradient()},
                         {"has_kernel", o.has_kernel()}};
           })}};
}

Json statsJson(const TimeStats& t) {
  return {{"n", t.n},        {"total_ns", t.total}, {"mean_ns", t.mean}, {"median_ns", t.median},
          {"p95_ns", t.p95}, {"min_ns", t.min},     {"max_ns", t.max}};
}

Json planJson(const std::optional<snapshot::Plan>& plan) {
  if (!plan) return nullptr;
  return {{"arena_bytes", plan->arena_bytes()},
          {"lower_bound_bytes", plan->lower_bound_bytes()},
          {"persistent_bytes", plan->persistent_bytes()},
          {"workspace_bytes", plan->workspace_bytes()},
          {"peak_instruction", plan->peak_instruction()},
          {"signature", plan->signature()},
          {"reason", plan->reason()},
          {"instructions", plan->instructions_size()},
          {"peak_owners", list(plan->peak_owners(),
                               [](const snapshot::MemoryOwner& o) {
                                 return Json{{"owner", o.owner()}, {"bytes", o.bytes()}};
                               })},
          {"buffers", list(plan->buffers(), [](const snapshot::Buffer& b) {
             return Json{{"index", b.index()},       {"value", b.value()},
                         {"name", b.name()},         {"class", bufferClassName(b.buffer_class())},
                         {"in_arena", b.in_arena()}, {"offset", b.offset()},
                         {"bytes", b.bytes()},       {"first", b.first()},
                         {"last", b.last()},         {"shares", b.shares()},
                         {"decision", b.decision()}, {"refusals", texts(b.refusals())}};
           })}};
}

Json timingJson(const Timing& timing) {
  const auto phase = [](const PhaseTime& p) {
    return Json{{"phase", p.phase}, {"share", p.share}, {"time", statsJson(p.time)}};
  };
  const auto op = [](const OpTime& o) {
    return Json{{"op", o.op},       {"phase", o.phase},         {"category", o.category}, {"instructions", o.instructions},
                {"share", o.share}, {"time", statsJson(o.time)}};
  };
  const auto instruction = [](const InstructionTime& i) {
    return Json{{"position", i.position},
                {"node", i.node},
                {"op", i.op},
                {"label", i.label},
                {"phase", i.phase},
                {"category", i.category},
                {"module_path", i.modulePath},
                {"implementation", i.implementation},
                {"bytes_read", i.bytesRead},
                {"bytes_written", i.bytesWritten},
                {"flops", i.flops},
                {"view", i.view},
                {"share", i.share},
                {"time", statsJson(i.time)}};
  };
  return {{"steps", timing.steps},
          {"sampled_steps", timing.sampledSteps},
          {"step", statsJson(timing.step)},
          {"speed", timing.kind.speed()},
          {"processor",
           {{"steps", timing.kind.measured},
            {"cpu_ns", timing.kind.cpu},
            {"wait_ns", timing.kind.wait},
            {"wall_ns", timing.kind.wall},
            {"busy", timing.kind.busy()}}},
          {"phases", list(timing.phases, phase)},
          {"ops", list(timing.ops, op)},
          {"instructions", list(timing.instructions, instruction)}};
}

Json rooflineJson(const ReportData& data) {
  return {{"peaks", list(data.roofline.peaks,
                         [](const PeakRow& p) {
                           return Json{{"name", p.name},         {"per_second", p.perSecond},
                                       {"capacity", p.capacity}, {"measured_over", p.measuredOver},
                                       {"threads", p.threads},   {"waiting", p.waiting}};
                         })},
          {"instructions", list(data.roofline.rows,
                                [&data](const RooflineRow& r) {
                                  const InstructionTime& i = data.timing.instructions[r.instruction];
                                  return Json{{"position", i.position},
                                              {"flops", i.flops},
                                              {"bytes", r.bytes},
                                              {"core_cache_bytes", r.coreCacheBytes},
                                              {"shared_cache_bytes", r.sharedCacheBytes},
                                              {"memory_bytes", r.memoryBytes},
                                              {"intensity", orNull(r.intensity)},
                                              {"roof_ns", r.roofNs},
                                              {"bound_by", r.boundBy},
                                              {"median_ns", r.share ? Json(i.time.median) : Json(nullptr)},
                                              {"share", orNull(r.share)},
                                              {"measured_bytes", orNull(r.measuredBytes)}};
                                })},
          {"counted", data.roofline.counted}};
}

Json kernelsJson(const ReportData& data) {
  return {{"rung", data.kernels.rung},
          {"rung_reason", data.kernels.reason},
          {"counted", data.kernels.counted},
          {"rows", list(data.kernels.rows, [](const DeviceKernelRow& r) {
             return Json{{"name", r.name},
                         {"blocks", r.blocks},
                         {"threads", r.threads},
                         {"registers", r.registers},
                         {"shared_bytes", r.sharedBytes},
                         {"occupancy", r.occupancy},
                         {"launches", r.launches},
                         {"ns", r.ns},
                         {"queue_ns", r.queueNs},
                         {"counted", r.counted},
                         {"read_bytes", r.readBytes},
                         {"written_bytes", r.writtenBytes},
                         {"achieved_occupancy", orNull(r.achieved)},
                         {"tensor", orNull(r.tensor)}};
           })}};
}

Json passJson(const PassRow& p) {
  return {{"phase", p.phase},
          {"name", p.name},
          {"ns", p.ns},
          {"matches", p.matches},
          {"nodes_before", p.nodesBefore},
          {"nodes_after", p.nodesAfter},
          {"notes", p.notes},
          {"near_misses", list(p.nearMisses,
                               [](const NearMissRow& m) {
                                 return Json{{"node", m.node}, {"name", m.nodeName}, {"condition", m.condition}};
                               })},
          {"near_misses_in_all", p.nearMissesInAll}};
}

JsonLines stepLines(const ReportData& data) {
  JsonLines lines;
  for (std::size_t i = 0; i < data.steps.size(); ++i) {
    const StepRow& s = data.steps[i];
    lines.begin();
    lines.member("step", s.step);
    lines.member("loss", s.loss);
    lines.member("learning_rate", s.learningRate);
    lines.member("gradient_norm", s.gradientNorm);
    lines.member("updated", s.updated);
    lines.member("samples", s.samples);
    lines.member("tokens", s.tokens);
    lines.member("begin_ns", s.beginNs);
    lines.member("ns", s.ns);
    lines.member("planned_bytes", s.plannedBytes);
    lines.member("peak_bytes", s.peakBytes);
    lines.member("warm_up", s.warmUp);
    lines.member("stopped_in", s.stoppedIn);
    lines.member("cpu_ns", s.cpuNs);
    lines.member("wait_ns", s.waitNs);
    lines.member("speed", s.speed);
    lines.member("batch", s.batch);
    lines.member("trained_tokens", data.tokens[i].trained);
    lines.member("padding_tokens", data.tokens[i].padding);
    lines.end();
  }
  return lines;
}

}  // namespace

std::string jsonReport(const ReportData& data) {
  Json root;
  root["version"] = 1;
  root["run"] = runJson(data);
  root["machine"] = machineJson(data.machine);
  root["model"] = modelJson(data.modelInfo);
  root["options"] = list(data.options, [&](const OptionRow& o) {
    return Json{{"name", o.name},
                {"value", settingJson(data, o.name, withoutFolders(o.value))},
                {"default", settingJson(data, o.name, o.defaultValue)},
                {"set_by", o.setBy},
                {"effect", o.effect},
                {"doc", o.doc}};
  });
  root["phases"] = list(data.phases, [](const PhaseRow& p) {
    return Json{{"id", p.id}, {"parent", orNull(p.parent)}, {"depth", p.depth}, {"name", p.name},  {"begin_ns", p.beginNs},
                {"ns", p.ns}, {"peak_bytes", p.peakBytes},  {"count", p.count}, {"error", p.error}};
  });
  root["passes"] = list(data.passes, passJson);
  root["plan"] = planJson(data.plan);
  root["timing"] = timingJson(data.timing);
  root["roofline"] = rooflineJson(data);
  root["kernels"] = kernelsJson(data);
  const ProcessorTimes& processor = data.ledger.processor;
  root["ledger"] = {{"step", data.ledger.step},
                    {"signature", data.ledger.signature},
                    {"steps", data.ledger.steps},
                    {"threads", data.ledger.threads},
                    {"cpu_ns", processor.cpu},
                    {"wait_ns", processor.wait},
                    {"wall_ns", processor.wall},
                    {"busy", processor.busy()},
                    {"ns_without_core", data.ledger.withoutCore()},
                    {"roof_waiting", data.ledger.roofWaiting}};
  root["ledger"]["lines"] = list(data.ledger.lines, [](const LedgerRow& l) {
    return Json{{"instruction", l.instruction},
                {"phase", l.phase},
                {"module", l.module},
                {"op", l.op},
                {"label", l.label},
                {"source", l.source},
                {"flops_useful", l.flopsUseful},
                {"flops_padding", l.flopsPadding},
                {"flops_ignored", l.flopsIgnored},
                {"flops_recomputed", l.flopsRecomputed},
                {"bytes_payload", l.bytesPayload},
                {"bytes_cast", l.bytesCast},
                {"bytes_layout", l.bytesLayout},
                {"bytes_copy", l.bytesCopy},
                {"ns_kernel", l.nsKernel},
                {"ns_gap", l.nsGap},
                {"ns_waiting", l.nsWaiting},
                {"roof_ns", l.roofNs}};
  });
  root["ledger"]["advice"] = list(data.ledger.advice, [&](const LedgerAdviceRow& a) {
    return Json{{"spent", a.spent},    {"change", a.change},
                {"option", a.option},  {"value", settingJson(data, a.option, a.value)},
                {"gain_ns", a.gainNs}, {"trial", a.trial}};
  });
  root["ranks"] = list(data.ranks.ranks, [](const RankRow& r) {
    return Json{{"rank", r.rank},
                {"steps", r.steps},
                {"came_last", r.last},
                {"ns", r.ns},
                {"exposed_ns", r.exposedNs},
                {"wait_ns", r.waitNs},
                {"move_ns", r.moveNs},
                {"sent_bytes", r.sentBytes},
                {"planned_sent_bytes", r.plannedSentBytes},
                {"peak_bytes", r.peakBytes},
                {"planned_bytes", r.plannedBytes},
                {"state_bytes", r.stateBytes}};
  });
  root["rank_collectives"] = list(data.ranks.collectives, [](const RankCollectiveRow& c) {
    return Json{
        {"node", c.node},      {"steps", c.steps},          {"mean_wait_ns", c.meanWaitNs}, {"worst_wait_ns", c.worstWaitNs},
        {"move_ns", c.moveNs}, {"exposed_ns", c.exposedNs}, {"sent_bytes", c.sentBytes},    {"waited_for", c.last}};
  });
  root["trials"] = list(data.trials, [&](const snapshot::Trial& t) {
    return Json{{"option", t.option()},
                {"from", settingJson(data, t.option(), t.from())},
                {"to", settingJson(data, t.option(), t.to())},
                {"rounds", t.rounds()},
                {"median_ns_before", t.median_ns_before()},
                {"median_ns_after", t.median_ns_after()},
                {"ratio", t.ratio()},
                {"low", t.low()},
                {"high", t.high()},
                {"adjusted_p", t.adjusted_p()},
                {"peak_before", t.peak_before()},
                {"peak_after", t.peak_after()},
                {"same_bits", t.parity().bits()},
                {"gradient_error", t.parity().gradient_relative()},
                {"verdict", t.verdict()},
                {"identical", t.identical()},
                {"note", t.note()}};
  });
  root["steps"] = nullptr;
  root["statistics"] = nullptr;
  root["statistics_steps_left_out"] = data.statisticsLeftOut;
  root["alerts"] = list(data.alerts, [](const AlertRow& a) {
    return Json{{"severity", a.severity}, {"code", a.code}, {"message", a.message},        {"node", a.node},
                {"value", a.value},       {"step", a.step}, {"instruction", a.instruction}};
  });
  root["lost"] = list(data.lost, [](const LostRow& l) {
    return Json{{"what", l.what},          {"amount", l.amount}, {"first_step", l.firstStep},
                {"last_step", l.lastStep}, {"reason", l.reason}, {"advice", l.advice}};
  });
  spellNumbers(root);
  // Names may hold bytes that are no text; the encoder puts U+FFFD in their place.
  std::string document = root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  putLines(document, "steps", stepLines(data));
  putLines(document, "statistics", statisticsLines(data));
  return document;
}

}  // namespace stepscope::storage

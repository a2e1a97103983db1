// `stepscope ledger`: what a step was spent on, and what would shrink it.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/command.h"
#include "app/cli/open_session.h"
#include "app/cli/output.h"
#include "app/cli/places.h"
#include "app/cli/record_run.h"
#include "app/cli/setting_json.h"
#include "app/cli/shared_options.h"
#include "app/cli/terminal.h"
#include "engine/lab/ledger.h"
#include "engine/profile/processor_meter.h"
#include "engine/profile/roofline.h"
#include "engine/snapshot/units.h"

namespace stepscope::cli {
namespace {

struct LedgerArguments {
  std::string model, project, by = "module";
  std::int64_t rows = 20;
  bool json = false;
  SharedOptions shared;
};

nlohmann::json lineJson(const char* event, const LedgerLine& line) {
  return {{"event", event},
          {"flops_useful", line.flops.useful},
          {"flops_padding", line.flops.padding},
          {"flops_ignored", line.flops.ignored},
          {"flops_recomputed", line.flops.recomputed},
          {"bytes_payload", line.bytes.payload},
          {"bytes_cast", line.bytes.cast},
          {"bytes_layout", line.bytes.layout},
          {"bytes_copy", line.bytes.copy},
          {"ns_kernel", line.time.kernel},
          {"ns_gap", line.time.gap},
          {"ns_waiting", line.time.waiting},
          {"roof_ns", line.roofNs}};
}

// The times that a kernel is judged by are longer for it.
std::string busyWarning(const ProcessorTimes& processor) {
  const std::string text = busyText(processor);
  return text.empty() ? text : fmt::format("machine busy: {}", text);
}

void printLedgerJson(const Ledger& ledger, const std::string& disturbance) {
  for (const LedgerLine& line : ledger.lines) {
    nlohmann::json event = lineJson("ledger_line", line);
    event.update({{"instruction", line.instruction},
                  {"phase", line.phase},
                  {"module", line.module},
                  {"op", line.op},
                  {"label", line.label},
                  {"source", line.source}});
    sayJson(event);
  }
  for (const LedgerAdvice& advice : ledger.advice)
    sayJson({{"event", "advice"},
             {"spent", advice.spent},
             {"change", advice.change},
             {"option", advice.option},
             {"value", settingJson(advice.option, advice.value)},
             {"gain_ns", advice.gainNs},
             {"trial", advice.trial}});
  nlohmann::json total = lineJson("ledger", ledger.total());
  total.update({{"step", ledger.step}, {"ns", ledger.ns}, {"signature", ledger.signature}, {"roof_note", disturbance}});
  total.update({{"steps", ledger.steps},
                {"threads", ledger.threads},
                {"cpu_ns", ledger.processor.cpu},
                {"wait_ns", ledger.processor.wait},
                {"wall_ns", ledger.processor.wall},
                {"busy", ledger.processor.busy()},
                {"ns_without_core", withoutCore(ledger)},
                {"roof_waiting", ledger.roofWaiting}});
  sayJson(total);
}

std::string share(std::int64_t part, std::int64_t all) {
  return all > 0 ? fmt::format("{:.1f} %", 100 * static_cast<double>(part) / static_cast<double>(all)) : std::string("-");
}

std::string flopsText(std::int64_t flops) { return fmt::format("{:.3g} G", static_cast<double>(flops) * 1e-9); }

void printLedgerText(const Ledger& ledger, const LedgerArguments& a, const std::string& disturbance) {
  const LedgerLine total = ledger.total();
  const std::int64_t away = withoutCore(ledger);
  say("step {} ({}), {}\n\n", ledger.step, ledger.signature, units::time(ledger.ns));
  if (const std::string busy = busyWarning(ledger.processor); !busy.empty())
    say("warning: {}; the lines hold it: measure again before judging a kernel by them\n\n", busy);
  const auto part = [](const char* name, const std::string& amount, const std::string& of) {
    return std::vector<std::string>{name, amount, of};
  };
  const std::int64_t flops = total.flops.total(), bytes = total.bytes.total(), time = total.time.total();
  const auto flopsPart = [&](const char* name, std::int64_t n) { return part(name, flopsText(n), share(n, flops)); };
  const auto bytesPart = [&](const char* name, std::int64_t n) { return part(name, units::bytes(n), share(n, bytes)); };
  const auto timePart = [&](const char* name, std::int64_t n) { return part(name, units::time(n), share(n, time)); };
  say("{}\n", table({"spent on", "amount", "share"},
                    {flopsPart("flops: useful", total.flops.useful), flopsPart("flops: padding", total.flops.padding),
                     flopsPart("flops: ignored labels", total.flops.ignored),
                     flopsPart("flops: computed again", total.flops.recomputed),
                     bytesPart("bytes: payload", total.bytes.payload), bytesPart("bytes: casts", total.bytes.cast),
                     bytesPart("bytes: layout", total.bytes.layout), bytesPart("bytes: copies", total.bytes.copy),
                     timePart("time: kernels", total.time.kernel - away), timePart("time: gaps", total.time.gap),
                     timePart("time: waiting", total.time.waiting), timePart("time: threads without a core", away)}));
  std::vector<std::vector<std::string>> rows;
  const std::vector<LedgerLine> groups = groupedBy(ledger, a.by);
  for (const LedgerLine& line : groups) {
    if (std::ssize(rows) == a.rows) break;
    rows.push_back({line.label.empty() ? "(none)" : line.label, units::time(line.time.total()),
                    share(line.time.total(), time), units::time(line.roofNs), flopsText(line.flops.useful),
                    flopsText(line.flops.total() - line.flops.useful), units::bytes(line.bytes.payload),
                    units::bytes(line.bytes.total() - line.bytes.payload)});
  }
  say("{}", table({a.by, "time", "share", "roof", "useful flops", "other flops", "payload", "other bytes"}, rows));
  if (std::ssize(groups) > a.rows) say("{} more\n", std::ssize(groups) - a.rows);
  say("\nroof: the least time by the measured peaks of this machine\n");
  if (!disturbance.empty()) say("warning: they were {}: a roof may be above the least time\n", disturbance);
  for (const LedgerAdvice& advice : ledger.advice) {
    say("\n{}: {}", advice.spent, advice.change);
    if (!advice.option.empty()) say(" ({}={})", advice.option, advice.value);
    say("; at most {} of the step, {}\n", units::time(advice.gainNs),
        share(static_cast<std::int64_t>(advice.gainNs), ledger.ns));
    if (!advice.trial.empty()) say("  to confirm it: {}\n", advice.trial);
  }
  if (ledger.advice.empty()) say("\nnothing that an option or a batch would shrink takes 1 % of the step\n");
}

storage::LedgerRecord recordOf(const Ledger& ledger) {
  storage::LedgerRecord record;
  record.step = ledger.step;
  record.signature = ledger.signature;
  record.steps = ledger.steps;
  record.threads = ledger.threads;
  record.processor = ledger.processor;
  record.roofWaiting = ledger.roofWaiting;
  for (const LedgerLine& l : ledger.lines)
    record.lines.push_back({l.instruction, l.phase, l.module, l.op, l.label, l.source, l.flops.useful, l.flops.padding,
                            l.flops.ignored, l.flops.recomputed, l.bytes.payload, l.bytes.cast, l.bytes.layout, l.bytes.copy,
                            l.time.kernel, l.time.gap, l.time.waiting, l.roofNs});
  for (const LedgerAdvice& a : ledger.advice)
    record.advice.push_back({a.spent, a.change, a.option, a.value, a.gainNs, a.trial});
  return record;
}

Status ledger(const LedgerArguments& a, const Output& output) {
  SS_ASSIGN(TrainOptions options, a.shared.apply());
  SS_TRY(checkPlace("project", a.project));
  options.ringBytes = 0;
  options.record = "instructions";
  options.roofline = true;
  const std::int64_t steps = options.origins.contains("steps") ? options.steps : 5;
  if (steps < 1) return invalidOption("steps", "found 0; expected 1 or more: the median of them is what the ledger tells");
  SS_ASSIGN(const auto session, openSession(a.model, options, output, a.shared.mapWeights));
  SS_TRY(prepare(*session, a.shared));
  SS_TRY(session->build());
  std::unique_ptr<storage::Recorder> recorder;
  if (!a.project.empty()) {
    SS_ASSIGN(recorder, startRecorder(a.project, a.model, *session));
    recordBuild(*recorder, *session);
  }
  std::map<std::string, std::string> values;
  for (const snapshot::Option& option : session->optionList()) values[option.name()] = option.value();
  // The median step of those that are not warm-up, each with its own plan and batch.
  std::vector<Ledger> ledgers;
  ProcessorTimes processor;
  std::optional<TeamQueue> queue;  // once the team is there
  for (std::int64_t step = 0; step < steps; ++step) {
    if (queue) (void)queue->sinceLast();
    SS_ASSIGN(const snapshot::StepRecord record, session->step());
    const std::int64_t waited = queue ? queue->sinceLast() : record.wait_ns();
    if (recorder) recorder->step(record);
    const Stepper& stepper = session->stepper();
    if (!queue) queue.emplace(stepper.variant().planOptions.threads);
    if (step == 0 && steps > 1) continue;
    processor.cpu += record.cpu_ns();
    processor.wait += waited;
    processor.wall += record.ns();
    SS_ASSIGN(Ledger made, ledgerOf({&stepper.graph(), &stepper.plan(), &record, &stepper.step().density,
                                     &stepper.step().keptRows, &stepper.batch(), stepper.peak() ? &*stepper.peak() : nullptr,
                                     [&](std::string_view option) { return values[std::string(option)]; }, a.model}));
    ledgers.push_back(std::move(made));
  }
  std::ranges::sort(ledgers, {}, &Ledger::ns);
  Ledger& median = ledgers[(ledgers.size() - 1) / 2];
  median.steps = static_cast<int>(ledgers.size());
  median.processor = processor;
  median.threads = session->stepper().variant().planOptions.threads;
  if (recorder) {
    recorder->ledger(recordOf(median));
    recorder->endRun(storage::RunStatus::kFinished);
    if (const auto closed = recorder->close(); !closed) return fail(ErrorCode::kIo, closed.error().message);
  }
  const cpu::MachinePeak* const peak = session->stepper().peak();
  const std::string disturbance = peak ? disturbanceText(*peak) : std::string();
  if (output.json())
    printLedgerJson(median, disturbance);
  else
    printLedgerText(median, a, disturbance);
  return {};
}

}  // namespace

Command ledgerCommand() {
  auto a = std::make_shared<LedgerArguments>();
  Command command{
      "ledger",
      "what a step was spent on: flops, bytes and time, each in one place, and what would shrink them; of --steps [5] the "
      "median one",
      {{"MODEL", &a->model, "ONNX file, or a folder of stepscope_capture", {}, true},
       {"--by", &a->by, "phase, module, op or source: what the lines are summed by [module]", "COLUMN"},
       {"--project", &a->project, "record the steps and the ledger into this project file", "FILE"},
       {"--rows", &a->rows, "lines to print [20]", "N"},
       {"--json", &a->json, "one JSON object per line: every instruction, the advice, the sums"}}};
  a->shared.addTo(command);
  command.run = [a] {
    const Output output(a->json);
    if (const auto wrong = usageError(a->shared)) return *wrong;
    const auto refuse = [](std::string text) {
      report({ErrorCode::kInvalidArgument, std::move(text)});
      return kUsage;
    };
    if (a->by != "phase" && a->by != "module" && a->by != "op" && a->by != "source")
      return refuse(fmt::format("option 'by': found '{}'; expected phase, module, op or source", a->by));
    if (a->rows < 1 || a->rows > 100'000)
      return refuse(fmt::format("option 'rows': found {}; expected 1 to 100000", a->rows));
    if (Status status = ledger(*a, output); !status) return report(status.error());
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli

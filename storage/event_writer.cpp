#include "storage/event_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "storage/blob.h"
#include "storage/bounded.h"
#include "storage/names.h"
#include "storage/roofline.h"
#include "storage/verdicts.h"
#include "storage/weights_mark.h"

namespace stepscope::storage {
namespace {

template <typename Strings>
std::string lines(const Strings& strings) {
  return fmt::format("{}", fmt::join(strings, "\n"));
}

std::string shapeText(const snapshot::Value& value) {
  return value.rank_known() ? fmt::format("[{}]", fmt::join(value.dims(), ", ")) : "?";
}

std::span<const char> asBlob(const std::string& bytes) { return {bytes.data(), bytes.size()}; }

// A number that was not computed is NULL.
std::optional<double> when(bool has, double value) { return has ? std::optional(value) : std::nullopt; }

// A copy or a commit has the node that it serves and is not that node's operator.
std::string_view operatorOf(const snapshot::Instruction& instruction) {
  switch (instruction.kind()) {
    case snapshot::KIND_COPY: return "Copy";
    case snapshot::KIND_COMMIT: return "Commit";
    default: return instruction.op();
  }
}

}  // namespace

Status EventWriter::write(const Event& event) {
  return std::visit([&](const auto& body) { return on(event.run, body); }, event.body);
}

EventWriter::Bookmark EventWriter::bookmark() const { return {runs_, flatGraph_, flatRun_}; }

void EventWriter::restore(const Bookmark& bookmark) {
  runs_ = bookmark.runs;
  flatGraph_ = bookmark.flatGraph;
  flatRun_ = bookmark.flatRun;
}

Status EventWriter::on(std::int64_t run, const RunBegan& event) {
  const RunInfo& info = event.info;
  runs_[run] = {};
  std::int64_t bytes = 0;
  SS_STORE_ASSIGN(const std::string model, packMessage(info.model, bytes));
  SS_STORE_TRY(insert("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'running', '', ?, NULL, ?)", run, info.name,
                      info.modelPath, info.commandLine, info.device, info.precision,
                      info.threads > 0 ? info.threads : info.machine.cores(), info.seed, info.optimizer, info.lossName,
                      info.weights, event.beganAt, asBlob(model)));
  SS_STORE_TRY(writeMachine(run, info.machine));
  return info.options.empty() ? Status{} : on(run, OptionsSet{info.options});
}

Status EventWriter::writeMachine(std::int64_t run, const snapshot::MachineInfo& machine) {
  return insert("INSERT INTO machine VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", run, machine.cpu(), machine.cores(),
                fmt::format("{}", fmt::join(machine.cpu_features(), " ")), machine.memory_bytes(), machine.gpu(),
                machine.gpu_note(), machine.version(), lines(machine.libraries()));
}

Status EventWriter::on(std::int64_t run, const RunEnded& event) {
  SS_STORE_TRY(writeFlatGraph());
  SS_STORE_TRY(measureRoofline(connection_, run));
  return insert("UPDATE runs SET status = ?, message = ?, ended_at = ? WHERE id = ?", event.status, event.message,
                event.endedAt, run);
}

Status EventWriter::on(std::int64_t run, const OptionsSet& event) {
  RunState& state = runs_[run];
  const int revision = state.nextRevision++;
  int position = 0;
  for (const snapshot::Option& option : event.options)
    if (option.name() == "record.keep") state.thinning.keep(option.value());
  for (const snapshot::Option& option : event.options)
    SS_STORE_TRY(insert("INSERT INTO options VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", run, revision, state.nextStep,
                        position++, option.name(), option.value(), option.default_value(), option.set_by(), option.doc(),
                        option.effect(), fmt::format("{}", fmt::join(option.choices(), "|"))));
  return {};
}

Status EventWriter::on(std::int64_t run, const BuildBegan&) {
  ++runs_[run].build;
  runs_[run].later = {};
  runs_[run].hasPhases = false;
  return {};
}

Status EventWriter::on(std::int64_t run, const PhasesDone& event) {
  RunState& state = runs_[run];
  if (state.hasPhases) ++state.build;  // phases that run again are a build of their own
  state.hasPhases = true;
  std::vector<std::int64_t> ids;
  for (const snapshot::PhaseSpan& span : event.phases) {
    const bool hasParent = span.parent() >= 0 && span.parent() < static_cast<int>(ids.size()) && span.depth() > 0;
    const std::optional<std::int64_t> parent =
        hasParent ? std::optional(ids[static_cast<std::size_t>(span.parent())]) : std::nullopt;
    SS_STORE_TRY(insert("INSERT INTO phases VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", run, state.build, parent,
                        span.depth(), span.name(), span.begin_ns(), span.ns(), span.peak_bytes(), span.count(),
                        span.error()));
    ids.push_back(connection_.lastRowId());
    if (span.has_pass()) SS_STORE_TRY(writePass(run, ids.back(), span.pass()));
  }
  return {};
}

Status EventWriter::writePass(std::int64_t run, std::int64_t phase, const snapshot::PassReport& pass) {
  SS_STORE_TRY(insert("INSERT INTO passes VALUES (?, ?, ?, ?, ?, ?, ?, ?)", phase, run, pass.name(), pass.matches(),
                      pass.near_misses_size(), pass.nodes_before(), pass.nodes_after(), lines(pass.notes())));
  for (const snapshot::NearMiss& miss : pass.near_misses())
    SS_STORE_TRY(insert("INSERT INTO near_misses VALUES (NULL, ?, ?, ?, ?)", phase, run, miss.node(), miss.condition()));
  return {};
}

Status EventWriter::insertGraph(std::int64_t run, std::int64_t id, const snapshot::Graph& graph, std::int64_t bytes,
                                const std::string& data, std::int64_t base) {
  return insert("INSERT INTO graphs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", id, run, runs_[run].build, graph.phase(),
                graph.nodes_size(), graph.values_size(), bytes, asBlob(data), base);
}

Status EventWriter::on(std::int64_t run, const GraphTaken& event) {
  SS_STORE_ASSIGN(std::string message, serialise(*event.graph));
  flatGraph_ = event.graph;
  flatRun_ = run;
  // Ids of the earlier phases are kept free below this one, so that their order is the order of the build.
  SS_STORE_ASSIGN(const std::int64_t newest, connection_.integer("SELECT max(id) FROM graphs"));
  const int stages = std::clamp(event.stages, 1, 1'000);
  const std::int64_t id = newest + stages;
  SS_STORE_TRY(insertGraph(run, id, *event.graph, static_cast<std::int64_t>(message.size()), compress(message), 0));
  runs_[run].later = {id, stages - 1, std::make_shared<const std::string>(std::move(message))};
  return {};
}

Status EventWriter::on(std::int64_t run, const StageTaken& event) {
  LaterGraph& later = runs_[run].later;
  SS_STORE_ASSIGN(std::string message, serialise(*event.graph));
  const auto bytes = static_cast<std::int64_t>(message.size());
  if (later.id == 0 || event.stage < 0 || event.stage >= later.stage)
    return on(run, Lost{"graphs", 1, -1, -1, "the graph of a phase came without the one after it",
                        "hand the graphs of a build over from the last to the first"});
  const std::int64_t id = later.id - (later.stage - event.stage);
  SS_STORE_TRY(insertGraph(run, id, *event.graph, bytes, compressAfter(*later.message, message), later.id));
  later =
      event.stage == 0 ? LaterGraph{} : LaterGraph{id, event.stage, std::make_shared<const std::string>(std::move(message))};
  return {};
}

Status EventWriter::writeFlatGraph() {
  if (!flatGraph_) return {};
  SS_STORE_TRY(insert("DELETE FROM nodes WHERE run = ?", flatRun_));
  SS_STORE_TRY(insert("DELETE FROM graph_values WHERE run = ?", flatRun_));
  int position = 0;
  for (const snapshot::Node& node : flatGraph_->nodes()) {
    const snapshot::Provenance& from = node.provenance();
    SS_STORE_TRY(insert("INSERT OR REPLACE INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", flatRun_,
                        position++, node.id(), node.name(), node.op(), node.domain(), node.category(),
                        phaseName(node.phase()), from.module_path(), from.source_file(), from.source_line(), from.forward(),
                        from.imported(), from.pass()));
  }
  for (const snapshot::Value& value : flatGraph_->values())
    SS_STORE_TRY(insert("INSERT OR REPLACE INTO graph_values VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", flatRun_, value.id(),
                        value.name(), value.dtype(), shapeText(value), roleName(value.role()), value.bytes(),
                        value.trained(), value.trained_reason()));
  flatGraph_.reset();
  return {};
}

Status EventWriter::on(std::int64_t run, const PlanMade& event) {
  RunState& state = runs_[run];
  const snapshot::Plan& plan = *event.plan;
  std::int64_t bytes = 0;
  SS_STORE_ASSIGN(const std::string data, packMessage(plan, bytes));
  SS_STORE_TRY(insert("INSERT INTO plans VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", run, state.build,
                      plan.signature(), plan.reason(), plan.instructions_size(), plan.buffers_size(), plan.arena_bytes(),
                      plan.lower_bound_bytes(), plan.persistent_bytes(), plan.workspace_bytes(), plan.peak_instruction(),
                      bytes, asBlob(data)));
  state.plan = connection_.lastRowId();
  state.warmUp = true;
  SS_STORE_TRY(writeInstructions(run, state.plan, plan));
  SS_STORE_TRY(writeRoofline(run, state.plan, plan));
  return writeBuffers(run, state.plan, plan);
}

Status EventWriter::on(std::int64_t run, const RunNamed& event) {
  return insert("UPDATE runs SET name = ? WHERE id = ?", event.name, event.run > 0 ? event.run : run);
}

Status EventWriter::on(std::int64_t run, const PlanResumed& event) {
  SS_STORE_ASSIGN(Statement plan,
                  connection_.prepare("SELECT id FROM plans WHERE run = ? AND signature = ? ORDER BY id DESC LIMIT 1"));
  plan.bind(run, event.signature);
  const bool found = plan.next();
  SS_STORE_TRY(plan.status());
  RunState& state = runs_[run];
  state.plan = found ? plan.integer(0) : 0;  // steps of a plan that was not recorded belong to none
  state.warmUp = false;
  if (found) return {};
  return on(run,
            Lost{"plans", 1, state.nextStep, -1, "the steps went back to a plan that was not recorded: " + event.signature,
                 "train fewer steps at a time"});
}

Status EventWriter::on(std::int64_t run, const VerdictsGiven& event) {
  const std::int64_t plan = runs_[run].plan;
  SS_STORE_TRY(insert("DELETE FROM determinism WHERE plan = ?", plan));
  int position = 0;
  for (const Verdict& v : groupVerdicts(event.nodes))
    SS_STORE_TRY(insert("INSERT INTO determinism VALUES (?, ?, ?, ?, ?, ?, ?)", plan, position++, run, v.verdict, v.reason,
                        static_cast<std::int64_t>(v.nodes.size()), fmt::format("[{}]", fmt::join(v.nodes, ","))));
  return {};
}

Status EventWriter::on(std::int64_t run, const TrialsDone& event) {
  const std::int64_t session = runs_[run].trials++;
  int position = 0;
  for (const snapshot::Trial& t : event.report.trials()) {
    const snapshot::TrialParity& p = t.parity();
    SS_STORE_TRY(
        insert("INSERT INTO trials VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
               "?, ?, ?, "
               "?, ?, ?)",
               run, session, position++, event.report.step(), t.option(), t.from(), t.to(), t.rounds(), t.median_ns_before(),
               t.median_ns_after(), t.ratio(), t.low(), t.high(), t.p(), t.adjusted_p(), t.peak_before(), t.peak_after(),
               t.measured_peak_before(), t.measured_peak_after(), t.expected_ns_before(), t.expected_ns_after(),
               p.compared(), p.bits(), p.loss(), p.gradient(), p.parameter(), p.gradient_relative(), p.parameter_relative(),
               p.cosine(), p.worst(), t.verdict(), t.identical(), t.note()));
  }
  return {};
}

Status EventWriter::on(std::int64_t run, const RanksStepped& event) {
  for (const RankStep& r : event.ranks) {
    SS_STORE_TRY(insert("INSERT OR REPLACE INTO rank_steps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", run,
                        r.step, r.rank, r.hasLoss ? std::optional<double>(r.loss) : std::nullopt, r.ns, r.waitNs, r.moveNs,
                        r.sentBytes, r.receivedBytes, r.plannedSentBytes, r.peakBytes, r.plannedBytes, r.stateBytes,
                        r.beginNs, r.exposedNs));
    std::int64_t position = 0;
    for (const RankCollective& c : r.collectives)
      SS_STORE_TRY(insert("INSERT OR REPLACE INTO rank_collectives VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", run, r.step,
                          position++, r.rank, c.node, c.waitNs, c.moveNs, c.sentBytes, c.beginNs, c.exposedNs));
    if (r.spanCount == 0) continue;
    const std::string data = compress(r.spans);
    SS_STORE_TRY(
        insert("INSERT OR REPLACE INTO rank_spans SELECT id, ?, ?, ?, ?, ? FROM steps WHERE run = ? AND step = ? "
               "ORDER BY id DESC LIMIT 1",
               r.rank, run, r.spanCount, static_cast<std::int64_t>(r.spans.size()), asBlob(data), run, r.step));
  }
  return {};
}

Status EventWriter::on(std::int64_t run, const BuffersMeasured& event) {
  const std::int64_t plan = runs_[run].plan;
  std::int64_t position = 0;
  for (const std::int64_t bytes : event.bytes) {
    if (bytes >= 0)
      SS_STORE_TRY(insert("UPDATE buffers SET measured_bytes = ? WHERE plan = ? AND position = ?", bytes, plan, position));
    ++position;
  }
  return {};
}

Status EventWriter::on(std::int64_t run, const LedgerMade& event) {
  const std::int64_t session = runs_[run].ledgers++;
  const ProcessorTimes& processor = event.ledger.processor;
  SS_STORE_TRY(insert("INSERT INTO ledger_sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", run, session, event.ledger.steps,
                      event.ledger.threads, processor.cpu, processor.wait, processor.wall, event.ledger.roofWaiting));
  int position = 0;
  for (const LedgerRow& l : event.ledger.lines)
    SS_STORE_TRY(insert("INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        run, session, position++, event.ledger.step, event.ledger.signature, l.instruction, l.phase,
                        l.module, l.op, l.label, l.source, l.flopsUseful, l.flopsPadding, l.flopsIgnored, l.flopsRecomputed,
                        l.bytesPayload, l.bytesCast, l.bytesLayout, l.bytesCopy, l.nsKernel, l.nsGap, l.nsWaiting,
                        l.roofNs));
  position = 0;
  for (const LedgerAdviceRow& a : event.ledger.advice)
    SS_STORE_TRY(insert("INSERT INTO ledger_advice VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", run, session, position++, a.spent,
                        a.change, a.option, a.value, a.gainNs, a.trial));
  return {};
}

Status EventWriter::writeInstructions(std::int64_t run, std::int64_t plan, const snapshot::Plan& message) {
  int position = 0;
  for (const snapshot::Instruction& i : message.instructions())
    SS_STORE_TRY(insert("INSERT INTO instructions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", plan, position++, run,
                        i.node(), phaseName(i.phase()), operatorOf(i), i.label(), i.bytes_read(), i.bytes_written(),
                        i.flops(), i.implementation(), i.view(), i.update_entry()));
  return {};
}

Status EventWriter::writeBuffers(std::int64_t run, std::int64_t plan, const snapshot::Plan& message) {
  int position = 0;
  for (const snapshot::Buffer& b : message.buffers())
    SS_STORE_TRY(insert("INSERT INTO buffers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)", plan, position++, run,
                        b.value(), b.name(), bufferClassName(b.buffer_class()), b.in_arena(), b.offset(), b.bytes(),
                        b.first(), b.last(), b.shares(), b.decision(), lines(b.refusals())));
  return {};
}

Status EventWriter::writeRoofline(std::int64_t run, std::int64_t plan, const snapshot::Plan& message) {
  if (!message.has_peak()) return {};
  const snapshot::MachinePeak& peak = message.peak();
  constexpr const char* kPeak = "INSERT INTO machine_peaks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
  SS_STORE_TRY(insert(kPeak, plan, 0, run, kCompute, peak.operations_per_second(), 0, 0, peak.threads(), peak.waiting()));
  for (int k = 0; k < peak.levels_size(); ++k) {
    const snapshot::MemoryLevel& level = peak.levels(k);
    SS_STORE_TRY(insert(kPeak, plan, k + 1, run, level.name(), level.bytes_per_second(), level.capacity(),
                        level.measured_over(), peak.threads(), peak.waiting()));
  }
  for (int i = 0; i < message.instructions_size(); ++i) {
    const snapshot::Instruction& instruction = message.instructions(i);
    if (!instruction.has_roof()) continue;
    const snapshot::Roof& roof = instruction.roof();
    const auto level = [&](std::string_view name) {
      for (int k = 0; k < std::min(peak.levels_size(), roof.level_bytes_size()); ++k)
        if (peak.levels(k).name() == name) return static_cast<std::int64_t>(roof.level_bytes(k));
      return std::int64_t{0};
    };
    const std::int64_t bytes = saturatingAdd(instruction.bytes_read(), instruction.bytes_written());
    SS_STORE_TRY(insert("INSERT INTO roofline VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, NULL, NULL, NULL)", plan, i, run,
                        instruction.flops(), bytes, level(kCoreCaches), level(kSharedCache), level(kMemory),
                        when(bytes > 0, instruction.flops() / static_cast<double>(std::max<std::int64_t>(bytes, 1))),
                        roof.ns(), roof.bound_by()));
  }
  return {};
}

Status EventWriter::on(std::int64_t run, const AlertRaised& event) {
  const snapshot::Alert& alert = event.alert;
  if (alert.code() == "missing_weights")
    SS_STORE_TRY(
        insert("UPDATE runs SET weights = ? WHERE id = ? AND weights = ?", kRandomWeights, run, kWeightsOfTheModel));
  if (alert.code() == "stopped")  // comes after the step it is about
    SS_STORE_TRY(insert("UPDATE steps SET stopped_in = 1 WHERE id = (SELECT max(id) FROM steps WHERE run = ? AND step = ?)",
                        run, alert.step()));
  return insert("INSERT INTO alerts VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", run, severityName(alert.severity()),
                alert.code(), alert.message(), alert.node(), alert.value(), alert.step(), alert.instruction());
}

Status EventWriter::on(std::int64_t run, const RunForgotten& event) {
  if (event.run == run) return {};
  runs_.erase(event.run);
  return removeRun(connection_, event.run);
}

Status EventWriter::on(std::int64_t, const ViewStateSet& event) {
  return insert("INSERT OR REPLACE INTO view_state VALUES (?, ?)", event.key, asBlob(event.value));
}

Status EventWriter::on(std::int64_t run, const Lost& event) {
  return insert("INSERT INTO lost VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", run, event.what, event.amount, event.firstStep,
                event.lastStep, event.reason, event.advice);
}

}  // namespace stepscope::storage

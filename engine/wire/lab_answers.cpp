#include "engine/wire/lab_answers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/snapshot/alert.h"
#include "engine/snapshot/units.h"
#include "engine/snapshot/utf8.h"
#include "engine/train/session.h"

namespace stepscope {
namespace {

snapshot::GoldenTensor tensorOf(const GoldenRow& row) {
  snapshot::GoldenTensor out;
  out.set_kind(std::string(kindName(row.kind)));
  out.set_name(toUtf8(row.name));
  for (const std::int64_t dim : row.dims) out.add_dims(dim);
  out.set_max_abs(row.maxAbs);
  out.set_max_rel(row.maxRel);
  out.set_cosine(row.cosine);
  out.set_tolerance(row.tolerance);
  for (const std::int64_t at : row.index) out.add_index(at);
  out.set_found(row.found);
  out.set_expected(row.expected);
  out.set_verdict(std::string(verdictName(row.verdict)));
  out.set_reason(toUtf8(row.words));
  out.set_cause(toUtf8(row.cause));
  out.set_module(toUtf8(row.module));
  out.set_source(toUtf8(row.source));
  return out;
}

// How far outside of its tolerance; NaN is the furthest.
double excess(const GoldenRow& row) {
  const double times = row.tolerance > 0 ? row.maxAbs / row.tolerance : row.maxAbs;
  return std::isnan(times) ? INFINITY : times;
}

snapshot::Alert alertOf(const GoldenRow& row, const Session& session) {
  std::string text = fmt::format("{} '{}' is not what PyTorch computed", kindName(row.kind), row.name);
  if (!row.dims.empty()) text += fmt::format(" ({})", fmt::join(row.dims, " x "));
  if (!row.index.empty())
    text += fmt::format(": {:.6g} where PyTorch has {:.6g}, at [{}], off by {:.2e} with a tolerance of {:.2e}",
                        units::signless(row.found), units::signless(row.expected), fmt::join(row.index, ", "),
                        units::signless(row.maxAbs), row.tolerance);
  if (!row.words.empty()) text += fmt::format(": {}", row.words);
  if (!row.module.empty()) text += fmt::format("; module {}", row.module);
  if (!row.source.empty()) text += fmt::format("; {}", row.source);
  if (!row.cause.empty()) text += fmt::format("; likely: {}", row.cause);
  snapshot::Alert alert = makeAlert(snapshot::Alert::WARNING, "capture_differs", toUtf8(text));
  alert.set_value(session.findValue(row.name).index);
  return alert;
}

}  // namespace

snapshot::GoldenComparison goldenAnswer(const GoldenReport& report, const Session& session) {
  snapshot::GoldenComparison out;
  out.set_captured(true);
  out.set_unchecked(toUtf8(report.unchecked));
  out.set_first_output(toUtf8(report.firstOutput));
  std::vector<const GoldenRow*> differ;
  for (const GoldenRow& row : report.rows) {
    *out.add_tensors() = tensorOf(row);
    if (row.verdict == GoldenVerdict::kDiffers) differ.push_back(&row);
  }
  std::stable_sort(differ.begin(), differ.end(), [](const GoldenRow* a, const GoldenRow* b) {
    return a->kind != b->kind ? a->kind < b->kind : excess(*a) > excess(*b);
  });
  if (differ.size() > kMostGoldenAlerts) differ.resize(kMostGoldenAlerts);
  for (const GoldenRow* row : differ) *out.add_alerts() = alertOf(*row, session);
  return out;
}

snapshot::LedgerReport ledgerAnswer(const Ledger& ledger) {
  snapshot::LedgerReport out;
  out.set_step(ledger.step);
  out.set_ns(ledger.ns);
  out.set_steps(ledger.steps);
  out.set_signature(toUtf8(ledger.signature));
  out.set_cpu_ns(ledger.processor.cpu);
  out.set_wait_ns(ledger.processor.wait);
  out.set_wall_ns(ledger.processor.wall);
  out.set_threads(ledger.threads);
  out.set_roof_waiting(ledger.roofWaiting);
  for (const LedgerLine& line : ledger.lines) {
    snapshot::LedgerEntry& entry = *out.add_lines();
    entry.set_instruction(line.instruction);
    entry.set_phase(toUtf8(line.phase));
    entry.set_module(toUtf8(line.module));
    entry.set_op(toUtf8(line.op));
    entry.set_label(toUtf8(line.label));
    entry.set_source(toUtf8(line.source));
    entry.set_flops_useful(line.flops.useful);
    entry.set_flops_padding(line.flops.padding);
    entry.set_flops_ignored(line.flops.ignored);
    entry.set_flops_recomputed(line.flops.recomputed);
    entry.set_bytes_payload(line.bytes.payload);
    entry.set_bytes_cast(line.bytes.cast);
    entry.set_bytes_layout(line.bytes.layout);
    entry.set_bytes_copy(line.bytes.copy);
    entry.set_ns_kernel(line.time.kernel);
    entry.set_ns_gap(line.time.gap);
    entry.set_ns_waiting(line.time.waiting);
    entry.set_roof_ns(line.roofNs);
  }
  for (const LedgerAdvice& advice : ledger.advice) {
    snapshot::LedgerAdvice& entry = *out.add_advice();
    entry.set_spent(advice.spent);
    entry.set_change(advice.change);
    entry.set_option(advice.option);
    entry.set_value(advice.value);
    entry.set_gain_ns(advice.gainNs);
    entry.set_trial(toUtf8(advice.trial));
  }
  return out;
}

snapshot::BisectFinding bisectAnswer(const BisectReport& report) {
  snapshot::BisectFinding out;
  out.set_step(report.step);
  out.set_batch(toUtf8(report.batch));
  out.set_tolerance(report.tolerance > 0 ? report.tolerance : report.all.bound);
  out.set_candidates(static_cast<int>(report.candidates));
  out.set_tried(report.tried);
  out.set_differs(report.differs);
  out.set_error(report.all.error);
  out.set_worst(toUtf8(report.all.what));
  for (const BisectOption& option : report.options) {
    snapshot::BisectOption& entry = *out.add_options();
    entry.set_name(option.name);
    entry.set_reference(toUtf8(option.reference));
    entry.set_value(toUtf8(option.value));
  }
  out.set_options_error(report.found.error);
  out.set_options_worst(toUtf8(report.found.what));
  out.set_value(toUtf8(report.value));
  out.set_label(toUtf8(report.label));
  out.set_module(toUtf8(report.module));
  out.set_source(toUtf8(report.source));
  out.set_value_error(report.valueError);
  for (const std::string& node : report.nodes) out.add_nodes(toUtf8(node));
  out.set_file(toUtf8(report.file.string()));
  out.set_data(toUtf8(report.data.string()));
  out.set_shown(report.shown);
  out.set_shown_error(report.shownError);
  out.set_note(toUtf8(report.note));
  return out;
}

}  // namespace stepscope

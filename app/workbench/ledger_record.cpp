// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/ledger_record.h"

#include <algorithm>

namespace stepscope {

storage::LedgerRecord ledgerRecord(const snapshot::LedgerReport& report) {
  storage::LedgerRecord record;
  record.step = report.step();
  record.signature = report.signature();
  record.steps = std::max(1, report.steps());
  record.threads = std::max(1, report.threads());
  record.processor = {report.cpu_ns(), report.wait_ns(), report.wall_ns()};
  record.roofWaiting = report.roof_waiting();
  for (const auto& l : report.lines())
    record.lines.push_back({l.instruction(), l.phase(), l.module(), l.op(), l.label(), l.source(), l.flops_useful(),
                            l.flops_padding(), l.flops_ignored(), l.flops_recomputed(), l.bytes_payload(), l.bytes_cast(),
                            l.bytes_layout(), l.bytes_copy(), l.ns_kernel(), l.ns_gap(), l.ns_waiting(), l.roof_ns()});
  for (const auto& a : report.advice())
    record.advice.push_back({a.spent(), a.change(), a.option(), a.value(), a.gain_ns(), a.trial()});
  return record;
}

snapshot::LedgerReport ledgerReport(const storage::LedgerRecord& record) {
  snapshot::LedgerReport report;
  report.set_step(record.step);
  report.set_ns(record.total().ns());
  report.set_signature(record.signature);
  report.set_steps(record.steps);
  report.set_threads(record.threads);
  report.set_cpu_ns(record.processor.cpu);
  report.set_wait_ns(record.processor.wait);
  report.set_wall_ns(record.processor.wall);
  report.set_roof_waiting(record.roofWaiting);
  for (const storage::LedgerRow& row : record.lines) {
    snapshot::LedgerEntry& entry = *report.add_lines();
    entry.set_instruction(static_cast<int>(row.instruction));
    entry.set_phase(row.phase);
    entry.set_module(row.module);
    entry.set_op(row.op);
    entry.set_label(row.label);
    entry.set_source(row.source);
    entry.set_flops_useful(row.flopsUseful);
    entry.set_flops_padding(row.flopsPadding);
    entry.set_flops_ignored(row.flopsIgnored);
    entry.set_flops_recomputed(row.flopsRecomputed);
    entry.set_bytes_payload(row.bytesPayload);
    entry.set_bytes_cast(row.bytesCast);
    entry.set_bytes_layout(row.bytesLayout);
    entry.set_bytes_copy(row.bytesCopy);
    entry.set_ns_kernel(row.nsKernel);
    entry.set_ns_gap(row.nsGap);
    entry.set_ns_waiting(row.nsWaiting);
    entry.set_roof_ns(row.roofNs);
  }
  for (const storage::LedgerAdviceRow& row : record.advice) {
    snapshot::LedgerAdvice& advice = *report.add_advice();
    advice.set_spent(row.spent);
    advice.set_change(row.change);
    advice.set_option(row.option);
    advice.set_value(row.value);
    advice.set_gain_ns(row.gainNs);
    advice.set_trial(row.trial);
  }
  return report;
}

std::shared_ptr<const snapshot::LedgerReport> readLedgerReport(const storage::Project& project, std::int64_t run) {
  const auto ledger = storage::readLedger(project, run);
  if (!ledger || ledger->lines.empty()) return nullptr;
  return std::make_shared<const snapshot::LedgerReport>(ledgerReport(*ledger));
}

}  // namespace stepscope

#include "storage/ledger.h"

#include <algorithm>
#include <cmath>

#include "storage/bounded.h"
#include "storage/sqlite.h"

namespace stepscope::storage {
namespace {

constexpr int kFirstVersion = 8, kWithProcessor = 17;

}  // namespace

void LedgerRow::add(const LedgerRow& other) {
  flopsUseful += other.flopsUseful;
  flopsPadding += other.flopsPadding;
  flopsIgnored += other.flopsIgnored;
  flopsRecomputed += other.flopsRecomputed;
  bytesPayload += other.bytesPayload;
  bytesCast += other.bytesCast;
  bytesLayout += other.bytesLayout;
  bytesCopy += other.bytesCopy;
  nsKernel += other.nsKernel;
  nsGap += other.nsGap;
  nsWaiting += other.nsWaiting;
  roofNs += other.roofNs;
}

LedgerRow LedgerRecord::total() const {
  LedgerRow sum;
  for (const LedgerRow& line : lines) sum.add(line);
  return sum;
}

std::int64_t LedgerRecord::withoutCore() const {
  const LedgerRow all = total();
  return std::min(all.nsKernel, stepscope::withoutCore(processor, threads, all.ns()));
}

Result<LedgerRecord> readLedger(const Project& project, std::int64_t run) {
  LedgerRecord out;
  if (project.schemaVersion() < kFirstVersion) return out;
  SS_STORE_ASSIGN(
      Statement lines,
      project.connection().prepare(
          "SELECT step, signature, instruction, phase, module, op, label, source, flops_useful, flops_padding, "
          "flops_ignored, flops_recomputed, bytes_payload, bytes_cast, bytes_layout, bytes_copy, ns_kernel, "
          "ns_gap, ns_waiting, roof_ns FROM ledger WHERE run = ?1 AND session = (SELECT max(session) FROM ledger "
          "WHERE run = ?1) ORDER BY position"));
  lines.bind(run);
  while (lines.next()) {
    out.step = lines.integer(0);
    out.signature = lines.text(1);
    LedgerRow& row = out.lines.emplace_back();
    row.instruction = lines.integer(2);
    row.phase = lines.text(3);
    row.module = lines.text(4);
    row.op = lines.text(5);
    row.label = lines.text(6);
    row.source = lines.text(7);
    int column = 8;
    for (std::int64_t* number :
         {&row.flopsUseful, &row.flopsPadding, &row.flopsIgnored, &row.flopsRecomputed, &row.bytesPayload, &row.bytesCast,
          &row.bytesLayout, &row.bytesCopy, &row.nsKernel, &row.nsGap, &row.nsWaiting})
      *number = lines.integer(column++);
    row.roofNs = lines.real(column);
  }
  SS_STORE_TRY(lines.status());
  if (project.schemaVersion() >= kWithProcessor) {
    SS_STORE_ASSIGN(
        Statement measured,
        project.connection().prepare("SELECT steps, threads, cpu_ns, wait_ns, wall_ns, roof_waiting FROM ledger_sessions "
                                     "WHERE run = ?1 ORDER BY session DESC LIMIT 1"));
    measured.bind(run);
    if (measured.next()) {
      const auto count = [&](int column) {
        return static_cast<int>(std::clamp<std::int64_t>(measured.integer(column), 1, 1 << 20));
      };
      out.steps = count(0);
      out.threads = count(1);
      out.processor = {boundedSize(measured.integer(2)), boundedSize(measured.integer(3)), boundedSize(measured.integer(4))};
      out.roofWaiting = std::isfinite(measured.real(5)) ? std::clamp(measured.real(5), 0.0, 1.0) : 0;
    }
    SS_STORE_TRY(measured.status());
  }
  SS_STORE_ASSIGN(Statement advice,
                  project.connection().prepare(
                      "SELECT spent, change, option, value, gain_ns, trial FROM ledger_advice WHERE run = ?1 AND session = "
                      "(SELECT max(session) FROM ledger WHERE run = ?1) ORDER BY position"));
  advice.bind(run);
  while (advice.next())
    out.advice.push_back({advice.text(0), advice.text(1), advice.text(2), advice.text(3), advice.real(4), advice.text(5)});
  SS_STORE_TRY(advice.status());
  return out;
}

}  // namespace stepscope::storage

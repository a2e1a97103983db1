// What a step was spent on: every operation, byte and nanosecond of it in one line of a ledger, none twice.
//
//   flops   useful · of padded tokens · of rows whose label the loss ignores · computed again
//   bytes   payload · casts · changes of layout · copies
//   time    in kernels · between them · waiting, before the first kernel, after the last and between parts of the step
//
// On a busy machine a part of the time in kernels is that of threads that had no core. The system says how much that was for
// whole steps (Ledger::processor), not for which instruction: the sums tell it apart, the lines hold it.
//
// A line for each instruction, and one for what belongs to none. Per kind the lines sum to the plan's flops and bytes and to
// the step's time exactly: shares are rounded to whole operations and the rest is useful; where kernels overlap, a
// nanosecond counts for the one that began first.
//
// Which operations are of padded tokens follows from the extents of what an instruction reads: [B, S, ...] and [B * S, ...]
// of the token ids are rows of tokens, [B, ..., S, S] pairs of them where a product of two values of the batch made them,
// and rows that pass eliminate_padding or sparse_labels keeps are padded as far as they fill a bucket. Rows as wide as the
// scores of the loss are ignored where their label is. Rows of other extents count as useful. Rows of extents that agree by
// chance are taken for tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/build/batch.h"
#include "engine/build/density.h"
#include "engine/build/kept_rows.h"
#include "engine/ir/graph.h"
#include "engine/plan/plan.h"
#include "engine/profile/roofline.h"
#include "engine/snapshot/busy_machine.h"
#include "engine/snapshot/run.pb.h"

namespace stepscope {

struct LedgerFlops {
  std::int64_t useful = 0, padding = 0, ignored = 0, recomputed = 0;
  std::int64_t total() const { return useful + padding + ignored + recomputed; }
};
struct LedgerBytes {
  std::int64_t payload = 0, cast = 0, layout = 0, copy = 0;
  std::int64_t total() const { return payload + cast + layout + copy; }
};
struct LedgerTime {
  std::int64_t kernel = 0, gap = 0, waiting = 0;  // nanoseconds
  std::int64_t total() const { return kernel + gap + waiting; }
};

struct LedgerLine {
  int instruction = -1;  // -1: what belongs to none
  std::string phase, module, op, label, source;
  LedgerFlops flops;
  LedgerBytes bytes;
  LedgerTime time;
  double roofNs = 0;                  // least time by the measured roofline; 0: not known
  void add(const LedgerLine& other);  // numbers only
};

// What would shrink a line of the ledger. `option`, `value`: as `--set` and trials take them; empty where it is the batch or
// the model that would have to change.
struct LedgerAdvice {
  std::string spent, change, option, value;
  double gainNs = 0;  // predicted, of the step
  std::string trial;  // the command that confirms it; empty: none does
};

struct Ledger {
  std::int64_t step = 0, ns = 0;
  int steps = 1;  // that were measured, of which this is the one with the median time
  std::string signature;
  std::vector<LedgerLine> lines;
  std::vector<LedgerAdvice> advice;  // largest gain first
  ProcessorTimes processor;          // of all that were measured
  int threads = 1;                   // that compute
  double roofWaiting = 0;            // cpu::MachinePeak::waiting of the roofs
  LedgerLine total() const;
};

// Of the time in kernels, how long a thread had no core on average.
std::int64_t withoutCore(const Ledger& ledger);

// A step that ran with its instructions recorded.
struct LedgerSubject {
  const Graph* graph = nullptr;
  const ExecutionPlan* plan = nullptr;
  const snapshot::StepRecord* record = nullptr;  // with spans
  const DensityProbe* density = nullptr;
  const std::vector<KeptRows>* keptRows = nullptr;
  const Batch* batch = nullptr;
  const cpu::MachinePeak* peak = nullptr;                       // null: no roofs
  std::function<std::string(std::string_view option)> valueOf;  // as it was in the step
  std::string model;                                            // as the command line names it
};

// Error: kInvalidArgument where the step has no spans.
Result<Ledger> ledgerOf(const LedgerSubject& subject);

// "phase", "module", "op" or "source": the lines summed by what they say there, longest time first. Empty texts are one
// line.
std::vector<LedgerLine> groupedBy(const Ledger& ledger, std::string_view column);

}  // namespace stepscope

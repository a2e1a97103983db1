// What a step was spent on, as `stepscope ledger` measured it: a line for each instruction, and what would shrink them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/snapshot/busy_machine.h"
#include "storage/error.h"
#include "storage/project.h"

namespace stepscope::storage {

// Operations, bytes and nanoseconds that stand in this line and in no other. Those of all lines sum to the step's.
struct LedgerRow {
  std::int64_t instruction = -1;  // of the plan; -1: what belongs to none
  std::string phase, module, op, label, source;
  std::int64_t flopsUseful = 0, flopsPadding = 0, flopsIgnored = 0, flopsRecomputed = 0;
  std::int64_t bytesPayload = 0, bytesCast = 0, bytesLayout = 0, bytesCopy = 0;
  std::int64_t nsKernel = 0, nsGap = 0, nsWaiting = 0;
  double roofNs = 0;  // least time by the machine's roofline, 0 = not known

  std::int64_t flops() const { return flopsUseful + flopsPadding + flopsIgnored + flopsRecomputed; }
  std::int64_t bytes() const { return bytesPayload + bytesCast + bytesLayout + bytesCopy; }
  std::int64_t ns() const { return nsKernel + nsGap + nsWaiting; }
  void add(const LedgerRow& other);  // numbers only
};

struct LedgerAdviceRow {
  std::string spent, change, option, value;  // option empty: the batch or the model would have to change
  double gainNs = 0;                         // predicted, at most
  std::string trial;                         // command that confirms it
};

struct LedgerRecord {
  std::int64_t step = 0;
  std::string signature;
  std::vector<LedgerRow> lines;
  std::vector<LedgerAdviceRow> advice;  // largest gain first
  int steps = 1;                        // that were measured
  int threads = 1;                      // that compute
  ProcessorTimes processor;             // of all of them; nothing in a file of a version before 17
  double roofWaiting = 0;               // of the peaks that the roofs are made of (peaksDisturbed)

  LedgerRow total() const;
  std::int64_t withoutCore() const;  // of the time in kernels: how long a thread had no core on average
};

// The newest ledger of the run; without lines where it has none. A file of a version before 8 that is opened for reading
// has none, which is no error.
Result<LedgerRecord> readLedger(const Project& project, std::int64_t run);

}  // namespace stepscope::storage

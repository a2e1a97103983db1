// The roofline of a plan: the least time each instruction can take on a machine, and what bounds it.
//
//   time = max(flops / peak of its type, sum over levels of bytes(level) / bandwidth(level))
//
// An operand comes from the fastest level that can still hold it: the bytes that other instructions touched since it was
// touched last, and its own, must fit (a cache that keeps what was used last). State, constants and parameters are used
// again in the next step, so a plan is followed around. A result in memory that nothing held before goes to the level that
// holds the operands and results of its instruction. Bytes and operations are those of the plan; transcendental functions
// count as the op's cost says. Since caches are in truth neither empty nor exact, a measured time may lie a little below its
// roof.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/plan/plan.h"
#include "engine/snapshot/busy_machine.h"
#include "engine/snapshot/plan.pb.h"
#include "engine/snapshot/run.pb.h"
#include "kernels/cpu/loops/machine_peak.h"

namespace stepscope {

struct InstructionRoof {
  double ns = 0;                         // 0: a view, or nothing to count
  std::string_view boundBy;              // "compute" or the name of a level; empty where ns is 0
  std::vector<std::int64_t> levelBytes;  // one per level of the peak
};

// One entry per instruction.
std::vector<InstructionRoof> rooflineOf(const ExecutionPlan& plan, const cpu::MachinePeak& peak);

// The peak as a message.
snapshot::MachinePeak toSnapshot(const cpu::MachinePeak& peak);
// Gives `out`, the snapshot of `plan`, its peak and the roofs of its instructions.
void addRoofline(const ExecutionPlan& plan, const cpu::MachinePeak& peak, snapshot::Plan& out);

// "products 251.2 GF/s (498.3 in bfloat16), core caches 104.5 GB/s, shared cache 53.1 GB/s, memory 35.4 GB/s with 2
// threads"; of a device that is not the CPU "... on the device". With disturbanceText() at its end.
std::string peakText(const cpu::MachinePeak& peak);

// A measurement of a busy machine, and that in words (engine/snapshot/busy_machine.h).
inline bool disturbed(const cpu::MachinePeak& peak) { return peaksDisturbed(peak.waiting); }
inline std::string disturbanceText(const cpu::MachinePeak& peak) { return disturbedText(peak.waiting); }

}  // namespace stepscope

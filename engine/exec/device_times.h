// When instructions ran on a device, by the clock of the host: what the device recorded (kernels/activity.h) in place of the
// time that the host took to put them on a stream.
#pragma once

#include <cstdint>
#include <span>

#include "engine/exec/executor.h"
#include "kernels/activity.h"

namespace stepscope {

// The line through pairs of readings of two clocks: host = host0 + rate * (device - device0).
struct ClockFit {
  std::int64_t device0 = 0, host0 = 0;
  double rate = 1;
  double residual = 0;  // ns: the largest distance of a pair from the line
  std::int64_t host(std::int64_t device) const;
};
// By least squares. One pair gives the offset alone, none the clock of the host.
ClockFit fitClocks(std::span<const ClockPair> pairs);

// Spans of instructions that have records of work get the time from the beginning of the first to the end of the last.
// Others (views, instructions of the CPU, records that were lost) keep what the host measured. `spans` are in the order of
// instructions. The records get the host's clock too, and the order of their calls; what no call asked for comes last.
void placeOnHostClock(Activity& activity, std::span<Span> spans);

// Puts the records behind those of `to`; both have the host's clock.
void append(Activity& to, Activity from);

// Where people see a span of the instruction: 0 the thread that runs the plan, 1 + n stream n of the device.
int rowOf(const Instruction& instruction);

}  // namespace stepscope

// Instructions on several streams: which stream, what waits for what, and until when memory must stay untouched.
//
// The host issues instructions one after the other. Those of one stream run in order. An instruction of the CPU in a plan
// for another device runs when it is issued, and the host issues nothing until it is done. A wait orders an instruction
// behind one of another stream: the stream waits, or, where the host reads the result (an instruction of the CPU, a
// condition of If), the host. Nothing else is ordered.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace stepscope {

// Gives instructions their streams: copies, and collectives that the device runs, get the last one where there are several;
// kernels follow the stream of the value that was made last, so that branches run beside each other. Then adds waits such
// that every two instructions of which one writes what the other reads or writes, by the same buffer, are ordered. Changes
// nothing for one stream of the CPU. `chosen`: by instruction, the stream that a kernel gets instead; -1: none
// (stream_partition.h).
void orderStreams(ExecutionPlan& plan, int streams, std::span<const int> chosen = {});

// Lengthens lifetimes in the arenas to the last instruction that could run at the same time as one that uses the buffer.
// Needs the waits. Doing so twice changes nothing more. Called by packArena(), when workspaces are there too.
void extendLifetimes(ExecutionPlan& plan);

// Every pair of instructions that touch the same bytes, one of them writing, and that nothing orders; empty for a correct
// plan. Branches of one If are not compared. Works from the rules above alone, on a packed plan; quadratic, for tests.
std::vector<std::string> checkStreams(const ExecutionPlan& plan, const Graph& graph);

}  // namespace stepscope

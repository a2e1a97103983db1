// A Chrome trace with the fields that Kineto writes (pytorch/kineto libkineto/src/output_json.cpp), so that Perfetto,
// chrome://tracing and HTA read it.
//
// ts and dur are microseconds with three decimals, relative to baseTimeNanoseconds. Process 1 is the worker; thread 1 holds
// the instructions of thread 0 of the plan, nested in their phase and in "ProfilerStep#N"; thread 1000 is start-up. cpu_op
// events carry "External id", "Ev Idx", node, module and kernel; backward operators carry "Sequence number" and "Fwd thread
// id" of their forward operator and a `fwdbwd` flow. On a device the calls that put work on streams and the work itself are
// events too (trace_device.h). Counters: loss, memory. At most 400,000 instruction spans: the newest
// steps; the number of steps left out is in "otherData".
#pragma once

#include <ostream>

#include "storage/report/data.h"

namespace stepscope::storage {

// Errors: those of reading the project. Whether all could be written, the stream tells.
Status writeTrace(const Project& project, const ReportData& data, std::ostream& out);

}  // namespace stepscope::storage

// The whole run as JSON, for programs. Keys are stable: they may be added, never renamed or removed while "version" is 1.
// Times are nanoseconds, sizes bytes. NaN, Infinity and -Infinity are strings; what was not computed is null. Extents are
// numbers, or the text of a symbol. What an option whose default is a number has is a number.
//
//   version       1
//   run           id, name, model, device, precision, threads, seed, optimizer, loss, weights, status, message, started,
//                 ended (nanoseconds since 1970), steps, first_loss, last_loss
//   machine       cpu, cores, cpu_features, memory_bytes, gpu, gpu_note, version, libraries
//   model         file_bytes, producer, ir_version, opsets, nodes, functions, parameters (elements), inputs and outputs:
//                 [name, dtype, dims, role, reason], ops
//   options       [name, value, default, set_by, effect, doc]
//   phases        [id, parent (id or null), depth, name, begin_ns, ns, peak_bytes, count, error]
//   passes        [phase (id), name, ns, matches, nodes_before, nodes_after, notes, near_misses: [node, name, condition],
//                 the first; near_misses_in_all]
//   plan          arena_bytes, lower_bound_bytes, persistent_bytes, workspace_bytes, peak_instruction, signature, reason,
//                 instructions, peak_owners: [owner, bytes], buffers: [index, value, name, class, in_arena, offset, bytes,
//                 first, last, shares, decision, refusals]; null when there is none
//   timing        steps, sampled_steps, step (statistics), speed, processor [steps, cpu_ns, wait_ns, wall_ns, busy], phases,
//                 ops, instructions; statistics are n, total_ns, mean_ns, median_ns, p95_ns, min_ns, max_ns; warm-up steps
//                 are left out
//   roofline      peaks: [name, per_second, capacity, measured_over, threads, waiting], empty when none was measured;
//                 instructions: [position, flops, bytes, core_cache_bytes, shared_cache_bytes, memory_bytes, intensity,
//                 roof_ns, bound_by, median_ns, share, measured_bytes]; counted: what measured_bytes are, empty when no step
//                 has counters
//   kernels       rung, rung_reason, counted of the newest step with them; rows: the table device_kernels, the longest first
//   ledger        step, signature, steps, threads, cpu_ns, wait_ns, wall_ns, busy, ns_without_core, roof_waiting; lines,
//                 advice
//   ranks, rank_collectives, trials   as the tables of the project; the newest session
//   steps         [step, loss, learning_rate, gradient_norm, updated, samples, tokens, begin_ns, ns, planned_bytes,
//                 peak_bytes, warm_up, stopped_in, cpu_ns, wait_ns, speed, batch, trained_tokens (those that the loss
//                 counts), padding_tokens]
//   statistics    [step, kind, of, value, elements, norm, mean, std, min, max, nan, inf], thinned out where there are very
//                 many: statistics_steps_left_out says of how many steps
//   alerts        [severity, code, message, node, value, step, instruction]
//   lost          [what, amount, first_step, last_step, reason, advice]
#pragma once

#include <string>

#include "storage/report/data.h"

namespace stepscope::storage {

std::string jsonReport(const ReportData& data);

}  // namespace stepscope::storage

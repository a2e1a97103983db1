// Tables of steps: times, statistics, data, alerts.
#include "storage/schema_tables.h"

namespace stepscope::storage {
namespace {

Table stepsTable() {
  return {
      "steps",
      "One row per executed micro step. A step executed again after a rewind is a new row with the same number: a step "
      "stands when it is the newest of its number, its number is not above that of the newest row of its run, and no row "
      "of `rewinds` affects it. Inside Stepscope, the table `judged_steps` has those that stand and whose ns says how fast "
      "a step is.",
      {{"id", kId, "number of the row, in order of execution"},
       {"run", kInt, "runs.id"},
       {"step", kInt, "micro step number, from 0"},
       {"plan", "INTEGER", "plans.id that was executed"},
       {"loss", kReal, "NULL when there is none, 'NaN' for NaN"},
       {"learning_rate", kReal, "learning rate"},
       {"gradient_norm", kReal, "global norm before clipping; NULL = not computed"},
       {"updated", kInt, "1 when the optimizer ran"},
       {"samples", kInt, "extent of the first axis of the first input"},
       {"tokens", kInt, "samples times sequence length, 0 when there is none"},
       {"begin_ns", kInt, "begin on the worker's clock"},
       {"ns", kInt, "duration, waiting included"},
       {"planned_bytes", kInt, "peak as planned, persistent memory included"},
       {"peak_bytes", kInt, "the same, measured by touched pages"},
       {"warm_up", kInt, "1 for the first step of a plan: left out of statistics"},
       {"batch", kText, "which entry of the data"},
       {"recording_ns", kIntOrZero, "of ns: spent on taking batch, row losses and statistics, 0 in most steps"},
       {"stopped_in", kIntOrZero, "1 when somebody stopped in it: ns includes the waiting"},
       {"cpu_ns", kIntOrZero, "processor time of the process in it, 0 = not measured"},
       {"wait_ns", kIntOrZero,
        "its threads were ready and waited for a core, summed up; of steps below 20 ms one in 20 ms has that of those "
        "before it too"},
       {"speed", "TEXT NOT NULL DEFAULT ''",
        "how it ran: full speed; recorded, with the begin and end of every instruction; watched, recorded and every value "
        "looked at for NaN and Inf; walked, instruction by instruction to stop at breakpoints"}},
      "",
      {"run, step"}};
}

Table stepSpansTable() {
  return {
      "step_spans",
      "Begin and end of every instruction of a step, packed. Inside Stepscope, read the table `spans` instead.",
      {{"step_id", kId, "steps.id"},
       {"run", kInt, "runs.id"},
       {"count", kInt, "spans in data"},
       {"bytes", kInt, "size before compression"},
       {"data", kBlob,
        "zstd of LEB128 numbers, five per span: instruction, node, begin_ns (each zigzag, minus the span before; the first "
        "minus steps.begin_ns), duration, thread"}},
      "",
      {"run"}};
}

Table tensorStatsTable() {
  return {"tensor_stats",
          "Statistics of a value at a step: of watched values in every step, and in some steps (option record.statistics) "
          "of trained "
          "parameters, their "
          "gradients and the outputs of modules.",
          {{"id", kId, "number of the row"},
           {"run", kInt, "runs.id"},
           {"step", kInt, "micro step"},
           {"value", kInt, "value id"},
           {"name", kText, "name of the value"},
           {"count", kInt, "elements"},
           {"min", kReal, "over finite elements"},
           {"max", kReal, "over finite elements"},
           {"mean", kReal, "over finite elements"},
           {"std", kReal, "population standard deviation"},
           {"norm", kReal, "Euclidean norm"},
           {"zeros", kInt, "elements that are 0"},
           {"nan", kInt, "elements that are NaN"},
           {"inf", kInt, "elements that are infinite"},
           {"negative", kInt, "elements below 0"},
           {"histogram", kText, "JSON array: 64 equal bins from min to max; empty array = not counted"},
           {"kind", "TEXT NOT NULL DEFAULT 'watched'",
            "watched (when it was computed; state as the step left it), parameter (before the update), gradient (as "
            "accumulated, before clipping), output (of a module)"},
           {"subject", "TEXT NOT NULL DEFAULT ''", "name of the parameter, or path of the module"},
           {"node", "INTEGER NOT NULL DEFAULT -1", "node that computed it, -1 = none"}},
          "",
          {"run, value, step"}};
}

Table alertsTable() {
  return {"alerts",
          "Warnings and errors, each with its place.",
          {{"id", kId, "number of the row"},
           {"run", kInt, "runs.id"},
           {"severity", kText, "info, warning, error"},
           {"code", kText, "stable name of the kind"},
           {"message", kText, "text"},
           {"node", kInt, "node id"},
           {"value", kInt, "value id"},
           {"step", kInt, "step, -1 before the first"},
           {"instruction", kInt, "instruction"}},
          "",
          {"run"}};
}

Table rewindsTable() {
  return {
      "rewinds",
      "Where a run went back to the state before an earlier step: what was recorded until then of that step and of later "
      "ones was taken back.",
      {{"id", kId, "number of the row"},
       {"run", kInt, "runs.id"},
       {"step", kInt, "the step that comes next"},
       {"last_step", kInt, "steps.id of the newest that is affected, 0 = none"},
       {"last_alert", kInt, "alerts.id of the newest that is affected, 0 = none"},
       {"last_statistics", kInt, "tensor_stats.id of the newest that are affected, 0 = none"}},
      "",
      {"run"}};
}

Table lostTable() {
  return {"lost",
          "What could not be recorded. A gap in the data is always a row here.",
          {{"id", kId, "number of the row"},
           {"run", kInt, "runs.id"},
           {"what", kText, "steps, spans, tensor_stats, graphs …"},
           {"amount", kInt, "how many"},
           {"first_step", kInt, "first step that is affected, -1 = none"},
           {"last_step", kInt, "last step that is affected"},
           {"reason", kText, "why"},
           {"advice", kText, "what to do"}},
          "",
          {"run"}};
}

Table batchDensitiesTable() {
  return {"batch_densities",
          "How much of an input of a step is data, and not padding or an ignored label.",
          {{"step_id", kInt, "steps.id"},
           {"input", kText, "name of the input"},
           {"kind", kText, "labels, mask, tokens"},
           {"run", kInt, "runs.id"},
           {"valid", kInt, "elements that are data"},
           {"total", kInt, "elements"},
           {"row_count", kInt, "rows along the last axis"},
           {"shortest", kInt, "fewest valid elements of a row"},
           {"longest", kInt, "most valid elements of a row"},
           {"reason", kText, "what tells data from padding"},
           {"computed", kInt, "of total, what the step computed: fewer where a pass leaves out what does not count"},
           {"decision", kText, "why, decided for this batch; empty where no pass that could is on"}},
          "PRIMARY KEY (step_id, input, kind)",
          {},
          true};
}

Table batchInputsTable() {
  return {
      "batch_inputs",
      "The batch of some steps (option record.batch): statistics of every input, and the beginning of its contents.",
      {{"step_id", kInt, "steps.id"},
       {"position", kInt, "0, 1, … in the order of the graph's inputs"},
       {"run", kInt, "runs.id"},
       {"value", kInt, "value id"},
       {"name", kText, "name of the input"},
       {"dtype", kText, "float32, int64, …"},
       {"shape", kText, "[8, 128]"},
       {"count", kInt, "elements"},
       {"min", kReal, "over finite elements"},
       {"max", kReal, "over finite elements"},
       {"mean", kReal, "over finite elements"},
       {"std", kReal, "population standard deviation"},
       {"zeros", kInt, "elements that are 0"},
       {"negative", kInt, "elements below 0"},
       {"nan", kInt, "elements that are NaN"},
       {"inf", kInt, "elements that are infinite"},
       {"kept_bytes", kInt, "bytes of contents that are kept, 0 = none; the option record.batch.bytes says how many may be"},
       {"data", kBlob, "zstd of snapshot.TensorData with the beginning of the contents; empty when none is kept"}},
      "PRIMARY KEY (step_id, position)",
      {}};
}

Table rowLossesTable() {
  return {"row_losses",
          "What every row of a batch contributed to the loss, before it was reduced, in the steps of batch_inputs.",
          {{"step_id", kId, "steps.id"},
           {"run", kInt, "runs.id"},
           {"quantity", kText, "cross entropy of 'logits' at 'labels'"},
           {"unavailable", kText, "why there are none, empty otherwise"},
           {"row_count", kInt, "rows"},
           {"counted", kInt, "rows that the loss does not ignore"},
           {"worst_row", "INTEGER", "row with the largest contribution, the first NaN before all; NULL = no row counts"},
           {"worst", kReal, "its contribution, 'NaN' for NaN"},
           {"mean", kReal, "over the finite rows that count; NULL = there is none"},
           {"not_finite", kInt, "rows that count and are NaN or infinite"},
           {"data", kBlob, "zstd of snapshot.RowLosses: the contribution of every row"}}};
}

Table deviceWorkTable() {
  return {"device_work",
          "What a device did in a step: kernels, copies and fills, with the calls that put them on their streams; waits; "
          "overhead. Inside Stepscope, read the table `device_records` instead.",
          {{"step_id", kId, "steps.id"},
           {"run", kInt, "runs.id"},
           {"rung", kText,
            "how it was found out: counters, records of the driver's profiler and what hardware counted; activity, these "
            "records alone; events, timed around the work; host, no records"},
           {"rung_reason", kText, "why not by the rung that was asked for (option record.rung)"},
           {"records", kInt, "kernels, copies, fills, waits and overhead in data"},
           {"lost", kInt, "records that are missing"},
           {"bytes", kInt, "size before compression"},
           {"data", kBlob, "zstd of snapshot.DeviceWork"},
           {"counted", "TEXT NOT NULL DEFAULT ''", "what the bytes of counters are; empty: nothing was to be counted"},
           {"uncounted", "INTEGER NOT NULL DEFAULT 0", "kernels that should have counters and have none"}},
          "",
          {"run"}};
}

Table deviceKernelsTable() {
  return {"device_kernels",
          "The kernels that a device ran, by the shape of their launches, summed up over the recorded steps.",
          {{"run", kInt, "runs.id"},
           {"name", kText, "of the kernel"},
           {"blocks", kInt, "of a launch"},
           {"threads", kInt, "of a block"},
           {"registers", kInt, "of a thread, 0 = not known"},
           {"shared_bytes", kInt, "of a block"},
           {"occupancy", kReal, "part of the threads of a multiprocessor that can be there at once, 0 = not known"},
           {"launches", kInt, "how often it ran"},
           {"ns", kInt, "time on the device"},
           {"queue_ns", kInt, "time between the return of the call and the beginning, 0 where a call is not known"},
           {"counted", "INTEGER NOT NULL DEFAULT 0", "of launches, those that were counted (option record.rung)"},
           {"read_bytes", "INTEGER NOT NULL DEFAULT 0", "of those, bytes read; device_work.counted says of what"},
           {"written_bytes", "INTEGER NOT NULL DEFAULT 0", "of those, bytes written"},
           {"achieved_occupancy", "REAL",
            "mean over those: part of the threads of a multiprocessor that were there; NULL = not counted"},
           {"tensor", "REAL", "mean over those: part of the time in which tensor cores worked; NULL = not counted"}},
          "PRIMARY KEY (run, name, blocks, threads, registers, shared_bytes)",
          {},
          true};
}

}  // namespace

std::vector<Table> stepTables() {
  return {stepsTable(),          stepSpansTable(),   tensorStatsTable(), alertsTable(),     rewindsTable(),      lostTable(),
          batchDensitiesTable(), batchInputsTable(), rowLossesTable(),   deviceWorkTable(), deviceKernelsTable()};
}

}  // namespace stepscope::storage

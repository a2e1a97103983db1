#include "storage/schema.h"

#include <fmt/format.h>

namespace stepscope::storage {
namespace {

constexpr std::string_view kId = "INTEGER PRIMARY KEY";
constexpr std::string_view kInt = "INTEGER NOT NULL";
constexpr std::string_view kIntOrZero = "INTEGER NOT NULL DEFAULT 0";  // columns that an older file has not
constexpr std::string_view kText = "TEXT NOT NULL";
constexpr std::string_view kReal = "REAL";
constexpr std::string_view kBlob = "BLOB NOT NULL";

Table metaTable() {
  return {"meta",
          "Facts about the file itself.",
          {{"key", "TEXT NOT NULL PRIMARY KEY", "last_compatible_version, created_by, created_at"},
           {"value", kText, "value of the key"}},
          "",
          {},
          true};
}

Table docsTable() {
  return {"docs",
          "Documentation of every table and column; the row with an empty column_name is about the table.",
          {{"table_name", kText, "table"},
           {"column_name", kText, "column, or empty"},
           {"type", kText, "declared type of the column"},
           {"text", kText, "what it holds, with its unit"}},
          "PRIMARY KEY (table_name, column_name)",
          {},
          true};
}

Table runsTable() {
  return {"runs",
          "One configuration and the steps executed under it.",
          {{"id", kId, "number of the run"},
           {"name", kText, "name shown for the run"},
           {"model_path", kText, "model file as it was given"},
           {"command_line", kText, "how the run was started; empty when from the window"},
           {"device", kText, "cpu, or cuda:N"},
           {"precision", kText, "fp32, fp16, bf16"},
           {"threads", kInt, "threads that executed the plan"},
           {"seed", kInt, "seed of all random numbers"},
           {"optimizer", kText, "sgd, adam, adamw, lamb"},
           {"loss_name", kText, "value that is minimised"},
           {"weights", kText, "where parameters came from; says so when missing weights were filled at random"},
           {"status", kText, "running, finished, failed, cancelled, interrupted (the writer died)"},
           {"message", kText, "why it failed, empty otherwise"},
           {"started_at", kInt, "wall clock, nanoseconds since 1970"},
           {"ended_at", "INTEGER", "wall clock, nanoseconds since 1970; NULL while it runs"},
           {"model", kBlob, "zstd of snapshot.ModelInfo: inputs, outputs, parameters, ops, problems"}}};
}

Table machineTable() {
  return {"machine",
          "The machine and the build that executed a run.",
          {{"run", kId, "runs.id"},
           {"cpu", kText, "name of the processor"},
           {"cores", kInt, "cores usable by the process"},
           {"cpu_features", kText, "instruction sets, separated by spaces"},
           {"memory_bytes", kInt, "main memory"},
           {"gpu", kText, "name of the GPU, empty when there is none"},
           {"gpu_note", kText, "why there is none"},
           {"version", kText, "version of Stepscope"},
           {"libraries", kText, "name and version, one a line"}}};
}

Table optionsTable() {
  return {"options",
          "Every option of a run. A live toggle makes a new revision; the newest is in force.",
          {{"run", kInt, "runs.id"},
           {"revision", kInt, "0, 1, … within the run"},
           {"since_step", kInt, "first step executed under this revision"},
           {"position", kInt, "place in the list of options"},
           {"name", kText, "name of the option"},
           {"value", kText, "value in force"},
           {"default_value", kText, "value without anybody setting it"},
           {"set_by", kText, "default, command line, project, window"},
           {"doc", kText, "what it does"},
           {"effect", kText, "what it changed in the build, empty before a build"},
           {"choices", kText, "allowed values separated by '|', empty when free"}},
          "PRIMARY KEY (run, revision, position)",
          {},
          true};
}

Table phasesTable() {
  return {"phases",
          "Span tree of building: the phases of a build and their children. A build that runs again adds rows.",
          {{"id", kId, "number of the span"},
           {"run", kInt, "runs.id"},
           {"build", kInt, "0, 1, … within the run"},
           {"parent", "INTEGER", "phases.id of the span around it, NULL at depth 0"},
           {"depth", kInt, "0 for phases, 1 and more for children"},
           {"name", kText, "load, check, … or a pass"},
           {"begin_ns", kInt, "begin on the worker's clock"},
           {"ns", kInt, "duration"},
           {"peak_bytes", kInt, "resident memory of the worker at its end"},
           {"count", kInt, "items worked on: nodes, matches, kernels"},
           {"error", kText, "empty when it succeeded"}},
          "",
          {"run, build"}};
}

Table passesTable() {
  return {"passes",
          "What each pass over the graph did.",
          {{"phase", kId, "phases.id of the span of this pass"},
           {"run", kInt, "runs.id"},
           {"name", kText, "name of the pass"},
           {"matches", kInt, "places where it applied"},
           {"near_misses", kInt, "places where it almost applied"},
           {"nodes_before", kInt, "nodes before it"},
           {"nodes_after", kInt, "nodes after it"},
           {"notes", kText, "decisions worth telling, one a line"}},
          "",
          {"run"}};
}

Table nearMissesTable() {
  return {"near_misses",
          "Places where a pass almost applied, with the first condition that failed.",
          {{"id", kId, "number of the row"},
           {"phase", kInt, "phases.id of the pass"},
           {"run", kInt, "runs.id"},
           {"node", kInt, "node id"},
           {"condition", kText, "the failed condition, in words"}},
          "",
          {"phase"}};
}

Table graphsTable() {
  return {"graphs",
          "Graph at each phase boundary. Within a build, and from run to run, the newest has the largest id.",
          {{"id", kId, "number of the snapshot"},
           {"run", kInt, "runs.id"},
           {"build", kInt, "build it belongs to"},
           {"phase", kText, "phase after which it was taken"},
           {"nodes", kInt, "nodes in it"},
           {"value_count", kInt, "values in it"},
           {"bytes", kInt, "size of the message before compression"},
           {"data", kBlob, "zstd of snapshot.Graph; where base is not 0, with the message of that graph as prefix"},
           {"base", kIntOrZero,
            "graphs.id of the graph after the next phase, beside which only the difference is kept; 0 = data stands alone"}},
          "",
          {"run, build, phase"}};
}

Table plansTable() {
  return {"plans",
          "Execution plans: one per build and signature of input shapes.",
          {{"id", kId, "number of the plan"},
           {"run", kInt, "runs.id"},
           {"build", kInt, "build it belongs to"},
           {"signature", kText, "input shapes of the variant"},
           {"reason", kText, "why it was made"},
           {"instruction_count", kInt, "instructions"},
           {"buffer_count", kInt, "buffers"},
           {"arena_bytes", kInt, "planned peak of arena memory"},
           {"lower_bound_bytes", kInt, "largest sum of live bytes in this order"},
           {"persistent_bytes", kInt, "parameters, optimizer state, constants, batch"},
           {"workspace_bytes", kInt, "part of the arena used by workspaces at the peak"},
           {"peak_instruction", kInt, "position of the instruction at the peak"},
           {"bytes", kInt, "size of the message before compression"},
           {"data", kBlob, "zstd of snapshot.Plan"}},
          "",
          {"run, build"}};
}

Table determinismTable() {
  return {"determinism",
          "Whether the nodes of a plan compute the same bits again, one row for each verdict and reason: "
          "SELECT node.value, verdict FROM determinism, json_each(nodes) AS node.",
          {{"plan", kInt, "plans.id"},
           {"position", kInt, "0, 1, … in the order of their first nodes"},
           {"run", kInt, "runs.id"},
           {"verdict", kText, "deterministic; deterministic, keyed random; depends on thread count"},
           {"reason", kText, "why"},
           {"node_count", kInt, "nodes it holds for"},
           {"nodes", kText, "JSON array of their ids, in the order of the plan"}},
          "PRIMARY KEY (plan, position)",
          {},
          true};
}

Table nodesTable() {
  return {"nodes",
          "Nodes of the newest graph of each run, in execution order.",
          {{"run", kInt, "runs.id"},
           {"position", kInt, "place in execution order"},
           {"id", kInt, "node id, the same in all phases"},
           {"name", kText, "name"},
           {"op", kText, "operator"},
           {"domain", kText, "operator domain, empty = ai.onnx"},
           {"category", kText, "matmul, normalization, activation, …"},
           {"phase", kText, "forward, backward, recompute, optimizer"},
           {"module_path", kText, "path of the user's module"},
           {"source_file", kText, "Python file that made it"},
           {"source_line", kInt, "line in it, 0 = unknown"},
           {"forward", kInt, "forward node of a backward node"},
           {"imported", kInt, "imported node it comes from"},
           {"pass", kText, "pass that made it"}},
          "PRIMARY KEY (run, id)",
          {},
          true};
}

Table valuesTable() {
  return {"graph_values",
          "Values (edges) of the newest graph of each run.",
          {{"run", kInt, "runs.id"},
           {"id", kInt, "value id"},
           {"name", kText, "name"},
           {"dtype", kText, "float32, int64, …"},
           {"shape", kText, "[2, batch, sequence+1], or ? while the rank is unknown"},
           {"role", kText, "node_output, input, initializer, state, constant"},
           {"bytes", kInt, "0 while a dim is unknown"},
           {"trained", kInt, "1 when the optimizer updates it"},
           {"trained_reason", kText, "why it is or is not trained"}},
          "PRIMARY KEY (run, id)",
          {},
          true};
}

Table instructionsTable() {
  return {"instructions",
          "Instructions of each plan, in order.",
          {{"plan", kInt, "plans.id"},
           {"position", kInt, "place in the plan"},
           {"run", kInt, "runs.id"},
           {"node", kInt, "node id"},
           {"phase", kText, "forward, backward, recompute, optimizer"},
           {"op", kText, "operator; Copy = to the host or to the device, Commit = what takes effect at the step's end"},
           {"label", kText, "operator and short name"},
           {"bytes_read", kInt, "bytes read"},
           {"bytes_written", kInt, "bytes written"},
           {"flops", kReal, "a multiply-add counts as two"},
           {"implementation", kText, "kernel that was chosen"},
           {"is_view", kInt, "1 = no work, output is the input's memory"},
           {"update_entry", kInt, "1 = runs only when the optimizer updates"}},
          "PRIMARY KEY (plan, position)",
          {},
          true};
}

Table machinePeaksTable() {
  return {
      "machine_peaks",
      "What the machine was measured to reach before a plan ran, when the option roofline was on: the roofs of the table "
      "roofline.",
      {{"plan", kInt, "plans.id"},
       {"position", kInt, "0 = arithmetic, then the levels of memory, fastest first"},
       {"run", kInt, "runs.id"},
       {"name", kText, "compute, core caches, shared cache, memory"},
       {"per_second", kReal,
        "compute: f32 operations of a matrix product of 1024³, a multiply-add counts as two; else bytes of a triad or an "
        "update in place, whichever is faster"},
       {"capacity", kInt, "bytes that the level holds, 0 = no limit"},
       {"measured_over", kInt, "bytes of the working set it was measured over, 0 for compute"},
       {"threads", kInt, "threads it was measured with"}},
      "PRIMARY KEY (plan, position)",
      {},
      true};
}

Table rooflineTable() {
  return {
      "roofline",
      "Instructions of a plan beside the least time that the machine allows them: the longer of arithmetic at its peak and "
      "of "
      "their bytes, each from the fastest level of memory that can still hold them. Without views and what counts nothing.",
      {{"plan", kInt, "plans.id"},
       {"position", kInt, "place in the plan, as in instructions"},
       {"run", kInt, "runs.id"},
       {"flops", kReal, "operations, a multiply-add counts as two"},
       {"bytes", kInt, "bytes read and written"},
       {"core_cache_bytes", kInt, "of them from or to the caches of single cores"},
       {"shared_cache_bytes", kInt, "of them from or to the cache that cores share"},
       {"memory_bytes", kInt, "of them from or to memory"},
       {"intensity", kReal, "operations per byte, NULL without bytes"},
       {"roof_ns", kReal, "least time of one execution"},
       {"bound_by", kText, "what takes that time: compute, core caches, shared cache, memory"},
       {"executions", kInt, "recorded executions in steps after warm-up; 0 until the run has ended"},
       {"median_ns", "INTEGER", "median time of them, NULL = never recorded"},
       {"share", kReal, "roof_ns divided by median_ns: 1 = as fast as the machine allows"}},
      "PRIMARY KEY (plan, position)",
      {"run"},
      true};
}

Table buffersTable() {
  return {"buffers",
          "Buffers of each plan with their address and the reason for it.",
          {{"plan", kInt, "plans.id"},
           {"position", kInt, "index of the buffer"},
           {"run", kInt, "runs.id"},
           {"value", kInt, "value id, -1 for a workspace"},
           {"name", kText, "name"},
           {"class", kText,
            "parameter, frozen, optimizer_state, gradient, activation, stash, backward, workspace, input, constant, update"},
           {"in_arena", kInt, "0 = persistent"},
           {"address", kInt, "bytes from the start of the arena"},
           {"bytes", kInt, "size"},
           {"first_use", kInt, "first instruction that touches it"},
           {"last_use", kInt, "last instruction that touches it"},
           {"shares", kInt, "buffer whose memory it uses, -1 = own"},
           {"decision", kText, "why it lies where it lies"},
           {"refusals", kText, "why it could not go in place, one a line"},
           {"measured_bytes", "INTEGER",
            "of bytes, what a step really touched, by pages (`stepscope memory`); NULL = not measured"}},
          "PRIMARY KEY (plan, position)",
          {},
          true};
}

Table stepsTable() {
  return {
      "steps",
      "One row per executed micro step. A step executed again after a rewind is a new row with the same number. Inside "
      "Stepscope, the "
      "table `judged_steps` has those whose ns says how fast a step is.",
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
        "how it ran: full speed; recorded, with the begin and end of every instruction; walked, instruction by instruction "
        "to stop at breakpoints"}},
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

Table deviceWorkTable() {
  return {
      "device_work",
      "What a device did in a step: kernels, copies and fills, with the calls that put them on their streams.",
      {{"step_id", kId, "steps.id"},
       {"run", kInt, "runs.id"},
       {"rung", kText, "how it was found out: activity, records of the driver's profiler; events, timed around the work"},
       {"rung_reason", kText, "why not by a higher rung"},
       {"records", kInt, "kernels, copies and fills in data"},
       {"lost", kInt, "records that are missing"},
       {"bytes", kInt, "size before compression"},
       {"data", kBlob, "zstd of snapshot.DeviceWork"}},
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
           {"queue_ns", kInt, "time between the return of the call and the beginning, 0 where a call is not known"}},
          "PRIMARY KEY (run, name, blocks, threads, registers, shared_bytes)",
          {},
          true};
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

Table tensorStatsTable() {
  return {"tensor_stats",
          "Statistics of a value at a step: of watched values, and in some steps (option record.statistics) of trained "
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
            "watched, parameter (before the update), gradient (as accumulated, before clipping), output (of a module)"},
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

Table trialsTable() {
  return {
      "trials",
      "What every option gives: the step as it is next to the step with one option changed (`stepscope trials`).",
      {{"run", kInt, "runs.id"},
       {"session", kInt, "0, 1, … in a run"},
       {"position", kInt, "0, 1, … fastest first, then what has no times, pairs of nothing at the end"},
       {"step", kInt, "micro step whose state was used"},
       {"option", kText,
        "name of the option; (nothing): the same plan, made twice; (5 % slower): that, waiting for 5 % of each step"},
       {"from_value", kText, "its value"},
       {"to_value", kText, "the value that was tried"},
       {"rounds", kInt, "pairs of steps, 0 = not measured"},
       {"before_ns", kReal, "median time of a step as it is, nanoseconds; with another batch per sample"},
       {"after_ns", kReal, "with the option changed"},
       {"ratio", kReal, "after / before: the median of the rounds"},
       {"low", kReal, "lower end of its 95 % interval"},
       {"high", kReal, "upper end of its 95 % interval"},
       {"p", kReal, "of the sign test, two-sided"},
       {"adjusted_p", kReal, "by Holm's method, for all trials of the session"},
       {"before_peak", kInt, "bytes, planned"},
       {"after_peak", kInt, "bytes, planned"},
       {"before_measured_peak", kInt, "bytes that the rounds touched, 0 = not measured"},
       {"after_measured_peak", kInt, "bytes that the rounds touched, 0 = not measured"},
       {"before_expected_ns", kReal, "least time by the roofline of the machine, 0 = not known"},
       {"after_expected_ns", kReal, "least time by the roofline of the machine, 0 = not known"},
       {"compared", kInt, "1 = numbers were compared"},
       {"same_bits", kInt, "1 = loss, gradients and parameters have the same bits"},
       {"loss_difference", kReal, "largest absolute difference"},
       {"gradient_difference", kReal, "largest absolute difference of an element"},
       {"parameter_difference", kReal, "largest absolute difference of an element"},
       {"gradient_error", kReal, "L2 norm of the difference by that of the tensor, the largest"},
       {"parameter_error", kReal, "L2 norm of the difference by that of the tensor, the largest"},
       {"cosine", kReal, "of the angle between gradients of one tensor, the smallest; 'NaN' where a number is not finite"},
       {"worst", kText, "tensor that differs most"},
       {"verdict", kText, "faster, slower, same, failed; not shown: the interval tells a change, the corrected p does not"},
       {"identical", kInt, "1 = the plan is the same"},
       {"note", kText, "why it was not measured, or what its times mean"}},
      "PRIMARY KEY (run, session, position)",
      {}};
}

Table ledgerTable() {
  return {"ledger",
          "What a step was spent on (`stepscope ledger`): every operation, byte and nanosecond in one row, none twice.",
          {{"run", kInt, "runs.id"},
           {"session", kInt, "0, 1, … in a run"},
           {"position", kInt, "0, 1, …"},
           {"step", kInt, "micro step"},
           {"signature", kText, "types and extents of its batch"},
           {"instruction", kInt, "instructions.position, -1 = what belongs to none"},
           {"phase", kText, "forward, backward, recompute, optimizer"},
           {"module", kText, "path of the module, empty = none"},
           {"op", kText, "operator"},
           {"label", kText, "operator and name of the node"},
           {"source", kText, "line of the Python source, empty = not known"},
           {"flops_useful", kInt, "operations; a multiply-add counts as two"},
           {"flops_padding", kInt, "operations on padded tokens"},
           {"flops_ignored", kInt, "operations on rows whose label the loss ignores"},
           {"flops_recomputed", kInt, "operations that were done before"},
           {"bytes_payload", kInt, "bytes read and written by what computes"},
           {"bytes_cast", kInt, "bytes read and written to change a type"},
           {"bytes_layout", kInt, "bytes read and written to change a layout"},
           {"bytes_copy", kInt, "bytes read and written by copies"},
           {"ns_kernel", kInt, "nanoseconds in the kernel; where kernels overlap, of the one that began first"},
           {"ns_gap", kInt, "nanoseconds between kernels"},
           {"ns_waiting", kInt, "nanoseconds before the first kernel, after the last and between parts of the step"},
           {"roof_ns", kReal, "least time by the roofline of the machine, 0 = not known"}},
          "PRIMARY KEY (run, session, position)",
          {}};
}

Table ledgerAdviceTable() {
  return {"ledger_advice",
          "What would shrink a line of the ledger.",
          {{"run", kInt, "runs.id"},
           {"session", kInt, "ledger.session"},
           {"position", kInt, "0, 1, … largest gain first"},
           {"spent", kText, "what it is spent on"},
           {"change", kText, "what would shrink it"},
           {"option", kText, "name of the option, empty = the batch or the model would have to change"},
           {"value", kText, "its value that would"},
           {"gain_ns", kReal, "nanoseconds of the step, predicted, at most"},
           {"trial", kText, "command that confirms it, empty = none does"}},
          "PRIMARY KEY (run, session, position)",
          {}};
}

Table pytorchImportsTable() {
  return {"pytorch_imports",
          "Files of PyTorch that were laid beside a run (`stepscope import`).",
          {{"run", kInt, "runs.id"},
           {"session", kInt, "0, 1, … in a run"},
           {"kind", kText, "time: a trace of torch.profiler; memory: a snapshot of torch.cuda.memory"},
           {"file", kText, "name of the file"},
           {"joined", kInt, "rows that both have"},
           {"theirs_alone", kInt, "rows of PyTorch that could not be joined"},
           {"ours_alone", kInt, "rows of the run that could not be joined"},
           {"notes", kText, "JSON array: what the numbers mean, what to be careful with"}},
          "PRIMARY KEY (run, session)",
          {}};
}

Table pytorchRowsTable() {
  return {"pytorch_rows",
          "What PyTorch measured of a thing and what the run took for it; ratio = our_amount / their_amount.",
          {{"run", kInt, "runs.id"},
           {"session", kInt, "pytorch_imports.session"},
           {"position", kInt, "0, 1, …"},
           {"phase", kText, "forward, backward, recompute, optimizer, step; of memory activations, persistent, peak"},
           {"module", kText, "path of the module, empty = none"},
           {"theirs", kText, "operators, or line that allocated; empty = the run alone has it"},
           {"ours", kText, "instructions, or value; empty = PyTorch alone has it"},
           {"their_amount", kReal, "nanoseconds of a step, or bytes"},
           {"our_amount", kReal, "nanoseconds of a step, or bytes"}},
          "PRIMARY KEY (run, session, position)",
          {}};
}

Table rankStepsTable() {
  return {"rank_steps",
          "A run of several processes (`stepscope train --distributed`): what each rank took of every step.",
          {{"run", kInt, "runs.id"},
           {"step", kInt, "micro step"},
           {"rank", kInt, "number of the process, 0 = the one that records"},
           {"loss", kReal, "of its own entry of the data; NULL = none"},
           {"ns", kInt, "wall time of the step"},
           {"wait_ns", kInt, "of its collectives, until all ranks had come"},
           {"move_ns", kInt, "of its collectives, then, until the results were there"},
           {"sent_bytes", kInt, "to other ranks"},
           {"received_bytes", kInt, "from other ranks"},
           {"planned_sent_bytes", kInt, "what the collectives of its plan send"},
           {"peak_bytes", kInt, "measured: state, constants, batch and arena"},
           {"planned_bytes", kInt, "the same as planned"},
           {"state_bytes", kInt, "parameters, statistics and optimizer state that it keeps"},
           {"begin_ns", kInt, "when the step began, on the clock of rank 0; 0 = not known"},
           {"exposed_ns", kInt, "of wait_ns and move_ns, while the rank did nothing else"}},
          "PRIMARY KEY (run, step, rank)",
          {},
          true};
}

Table rankCollectivesTable() {
  return {"rank_collectives",
          "Every exchange of a step between the ranks of a run, as each of them saw it.",
          {{"run", kInt, "runs.id"},
           {"step", kInt, "micro step"},
           {"position", kInt, "0, 1, … in the step"},
           {"rank", kInt, "number of the process"},
           {"node", kText, "node of the plan, or what ranks tell each other besides"},
           {"wait_ns", kInt, "until all ranks had come"},
           {"move_ns", kInt, "then, until the results were there"},
           {"sent_bytes", kInt, "by this rank"},
           {"begin_ns", kInt, "when it began, on the clock of rank 0; 0 = not known"},
           {"exposed_ns", kInt, "of wait_ns and move_ns, while the rank did nothing else"}},
          "PRIMARY KEY (run, step, position, rank)",
          {},
          true};
}

Table rankSpansTable() {
  return {"rank_spans",
          "Begin and end of every instruction of a step on the ranks from 1 on, packed; those of rank 0 are in step_spans. "
          "Inside "
          "Stepscope, read the table `spans_of_ranks` instead.",
          {{"step_id", kInt, "steps.id"},
           {"rank", kInt, "number of the process"},
           {"run", kInt, "runs.id"},
           {"count", kInt, "spans in data"},
           {"bytes", kInt, "size before compression"},
           {"data", kBlob, "as step_spans.data; the first begin minus begin_ns of the rank in rank_steps"}},
          "PRIMARY KEY (step_id, rank)",
          {"run"}};
}

Table viewStateTable() {
  return {"view_state",
          "What the window remembers with this project.",
          {{"key", "TEXT NOT NULL PRIMARY KEY", "name of the setting"}, {"value", kBlob, "opaque bytes of the window"}},
          "",
          {},
          true};
}

}  // namespace

const std::vector<Table>& tables() {
  static const std::vector<Table> all = {
      metaTable(),          docsTable(),           runsTable(),           machineTable(),      optionsTable(),
      phasesTable(),        passesTable(),         nearMissesTable(),     graphsTable(),       plansTable(),
      nodesTable(),         valuesTable(),         instructionsTable(),   buffersTable(),      stepsTable(),
      stepSpansTable(),     tensorStatsTable(),    alertsTable(),         lostTable(),         viewStateTable(),
      machinePeaksTable(),  rooflineTable(),       batchDensitiesTable(), batchInputsTable(),  rowLossesTable(),
      determinismTable(),   trialsTable(),         ledgerTable(),         ledgerAdviceTable(), deviceWorkTable(),
      deviceKernelsTable(), pytorchImportsTable(), pytorchRowsTable(),    rankStepsTable(),    rankCollectivesTable(),
      rankSpansTable()};
  return all;
}

std::string createStatements(const Table& table) {
  std::string sql = fmt::format("CREATE TABLE {} (", table.name);
  bool first = true;
  for (const Column& column : table.columns) {
    sql += fmt::format("{}{} {}", first ? "" : ", ", column.name, column.type);
    first = false;
  }
  if (!table.constraint.empty()) sql += fmt::format(", {}", table.constraint);
  sql += table.withoutRowId ? ") WITHOUT ROWID;" : ");";
  int number = 0;
  for (std::string_view columns : table.indexes)
    sql += fmt::format("CREATE INDEX {}_index_{} ON {} ({});", table.name, number++, table.name, columns);
  return sql;
}

}  // namespace stepscope::storage

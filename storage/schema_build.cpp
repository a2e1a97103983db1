// Tables of a build: phases, passes, graphs, and the plan.
#include "storage/schema_tables.h"

namespace stepscope::storage {
namespace {

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
       {"share", kReal, "roof_ns divided by median_ns: 1 = as fast as the machine allows"},
       {"measured_bytes", "INTEGER",
        "of its kernels in the newest step with counters (device_work.counted says of what); NULL = not counted"}},
      "PRIMARY KEY (plan, position)",
      {"run"},
      true};
}

}  // namespace

std::vector<Table> buildTables() {
  return {phasesTable(), passesTable(),       nearMissesTable(), graphsTable(),      plansTable(),   nodesTable(),
          valuesTable(), instructionsTable(), buffersTable(),    determinismTable(), rooflineTable()};
}

}  // namespace stepscope::storage

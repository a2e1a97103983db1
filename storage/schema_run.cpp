// What the project file says of itself, of its runs and of the machine.
#include "storage/schema_tables.h"

namespace stepscope::storage {
namespace {

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

Table viewStateTable() {
  return {"view_state",
          "What the window remembers with this project.",
          {{"key", "TEXT NOT NULL PRIMARY KEY", "name of the setting"}, {"value", kBlob, "opaque bytes of the window"}},
          "",
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
       {"threads", kInt, "threads it was measured with, 0 = on a device that is not the CPU"},
       {"waiting", kRealOrZero, "share of the time for which they had no core; above 0.05 the peak may be too low"}},
      "PRIMARY KEY (plan, position)",
      {},
      true};
}

}  // namespace

std::vector<Table> runTables() {
  return {metaTable(), docsTable(), runsTable(), machineTable(), optionsTable(), viewStateTable(), machinePeaksTable()};
}

}  // namespace stepscope::storage

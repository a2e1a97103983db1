// Tables of what compares: trials, the ledger, what PyTorch computes, and other ranks.
#include "storage/schema_tables.h"

namespace stepscope::storage {
namespace {

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

Table ledgerSessionsTable() {
  return {"ledger_sessions",
          "What the steps of a ledger took of the processors. Above a tenth, wait_ns / (cpu_ns + wait_ns) says that "
          "something else ran on the machine.",
          {{"run", kInt, "runs.id"},
           {"session", kInt, "ledger.session"},
           {"steps", kInt, "that were measured; the ledger is that of the median one"},
           {"threads", kInt, "that compute"},
           {"cpu_ns", kInt, "processor time of the process in all of them"},
           {"wait_ns", kInt, "its threads were ready to run and had no core, summed up over them"},
           {"wall_ns", kInt, "by the clock"},
           {"roof_waiting", kReal,
            "share of the time for which the measurement of the roofs had no core; above 0.05 they may be too high"}},
          "PRIMARY KEY (run, session)",
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

}  // namespace

std::vector<Table> studyTables() {
  return {trialsTable(),      ledgerTable(),    ledgerSessionsTable(),  ledgerAdviceTable(), pytorchImportsTable(),
          pytorchRowsTable(), rankStepsTable(), rankCollectivesTable(), rankSpansTable()};
}

}  // namespace stepscope::storage

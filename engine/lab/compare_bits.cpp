#include "engine/lab/compare_bits.h"

#include "engine/profile/compare_tensors.h"

namespace stepscope {

Result<snapshot::CompareReply> compareBits(Stepper& stepper, StepContext& context, const Batch& batch) {
  const StateSnapshot start = context.state.copy();
  Executor& executor = stepper.executor();
  const ExecutionPlan& plan = executor.plan();
  const Graph& graph = stepper.graph();
  std::vector<Tensor> first(graph.valueCapacity());
  snapshot::CompareReply reply;
  reply.set_equal(true);
  for (const int round : {0, 1}) {
    SS_TRY(stepper.feed(batch));
    Executor::RunOptions run = stepper.runOptions();
    run.cancel = &context.cancelled;
    run.after = [&](int i) -> Status {
      if (plan.instructions[static_cast<std::size_t>(i)].kind != InstructionKind::kKernel) return {};
      if (!executor.conditionsHold(i)) return {};  // a branch that did not run made nothing
      for (const int b : plan.instructions[static_cast<std::size_t>(i)].outputs) {
        if (b < 0) continue;
        const ValueId id = plan.buffers[static_cast<std::size_t>(b)].value;
        const auto contents = executor.read(id);
        if (!contents) continue;
        Tensor& kept = first[static_cast<std::size_t>(id.index)];
        if (round == 0) {
          kept = contents->clone();
          continue;
        }
        snapshot::ComparisonResult result = compareTensors(graph.value(id).name, kept.view(), contents->view());
        if (!result.equal_bits()) reply.set_equal(false);
        *reply.add_values() = std::move(result);
      }
      return {};
    };
    const auto ran = executor.run(0, stepper.count(), run);
    context.state.restore(start);
    ++context.places;
    if (!ran) return tl::make_unexpected(ran.error());
  }
  return reply;
}

}  // namespace stepscope

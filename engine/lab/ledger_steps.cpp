#include "engine/lab/ledger_steps.h"

#include <algorithm>
#include <optional>

#include "engine/lab/option_proof.h"
#include "engine/profile/processor_meter.h"

namespace stepscope {
namespace {

constexpr int kSteps = 5;
constexpr std::int64_t kSlowNs = 2'000'000'000;  // of a step; of such ones a single one is measured

}  // namespace

Result<Ledger> measureLedger(
    SideSubject subject, int steps,
    const std::function<void(const std::string& what, std::int64_t done, std::int64_t total)>& progress) {
  subject.request.options.record = "instructions";
  subject.request.options.roofline = true;
  subject.keepGradients = false;
  const TrainOptions& options = subject.request.options;
  SS_ASSIGN(const auto side, SideStep::make(subject));
  Stepper& stepper = side->stepper();
  const auto& table = subject.model->registry->options();
  std::vector<Ledger> measured;
  ProcessorTimes processor;
  const int threads = stepper.variant().planOptions.threads;
  std::optional<TeamQueue> queue;  // once the team is there
  int wanted = steps > 0 ? steps : kSteps;
  for (int ran = 0; ran <= wanted; ++ran) {
    if (subject.cancelled && subject.cancelled->exchange(false)) return fail(ErrorCode::kCancelled, "ledger: cancelled");
    if (progress) progress("measuring what a step is spent on", ran, wanted + 1);
    snapshot::StepRecord record;
    if (queue) (void)queue->sinceLast();
    SS_TRY(stepper.run(Batch(subject.batch), record));
    if (ran == 0) {
      if (steps == 0 && record.ns() > kSlowNs) wanted = 1;
      queue.emplace(threads);
      continue;
    }
    processor.wait += queue->sinceLast();
    processor.cpu += record.cpu_ns();
    processor.wall += record.ns();
    SS_ASSIGN(Ledger made,
              ledgerOf({&stepper.graph(), &stepper.plan(), &record, &stepper.step().density, &stepper.step().keptRows,
                        &stepper.batch(), stepper.peak(),
                        [&](std::string_view name) { return optionValue(options, std::string(name), table); }, "MODEL"}));
    measured.push_back(std::move(made));
  }
  std::ranges::sort(measured, {}, &Ledger::ns);
  Ledger& median = measured[(measured.size() - 1) / 2];
  median.step = subject.start.counters.step;
  median.steps = wanted;
  median.processor = processor;
  median.threads = threads;
  return std::move(median);
}

}  // namespace stepscope

#include "engine/step/step_alerts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/build/schedule.h"
#include "engine/snapshot/alert.h"
#include "engine/snapshot/utf8.h"
#include "kernels/device_graph.h"

namespace stepscope {

void tellWhereScheduleEnded(const TrainOptions& options, StepContext& context) {
  const std::int64_t update = context.state.counters.scheduledUpdates();
  if (context.scheduleEndTold || scheduleFactor(options, update) > 0) return;
  context.scheduleEndTold = true;
  context.log.warn("schedule_ended",
                   fmt::format("learning rate is 0: lr-schedule {} ended after {} updates (option total-steps), and this is "
                               "update {}; expected no more steps, or a larger total-steps",
                               options.lrSchedule, options.totalSteps, update + 1),
                   context.state.counters.step);
}

// Once for a set of them: before the first step, not with each of their calls.
void tellWhatHasNoOrder(const Executor& executor, BuildLog& log) {
  std::vector<std::string> nodes;
  std::string reason;
  for (std::size_t i = 0; i < executor.plan().instructions.size(); ++i) {
    const Determinism* const says = executor.determinism(static_cast<int>(i));
    const NodeId node = executor.plan().instructions[i].node;
    if (!says || says->order != Determinism::Order::kUnordered || !node) continue;
    if (reason.empty()) reason = says->reason;
    nodes.push_back(executor.graph().node(node).label());
  }
  if (nodes.empty()) return;
  constexpr std::size_t kNamed = 8;
  const std::size_t more = nodes.size() - std::min(nodes.size(), kNamed);
  nodes.resize(nodes.size() - more);
  log.warn("not_deterministic", toUtf8(fmt::format("option 'deterministic': {}{} differ{} from run to run: {}",
                                                   fmt::join(nodes, ", "), more > 0 ? fmt::format(" and {} more", more) : "",
                                                   nodes.size() + more == 1 ? "s" : "", reason)));
}

// A cancel waits for the instruction that runs, so the user is told of those that keep it waiting: once per plan.
void nameLongInstructions(const Executor& executor, const std::vector<Span>& spans, std::int64_t longMs, BuildLog& log) {
  std::vector<Span> longest;
  for (const Span& span : spans)
    if (span.end - span.begin > longMs * 1'000'000) longest.push_back(span);
  if (longest.empty()) return;
  std::sort(longest.begin(), longest.end(), [](const Span& a, const Span& b) { return a.end - a.begin > b.end - b.begin; });
  std::string text;
  for (std::size_t i = 0; i < longest.size() && i < 5; ++i)
    text += fmt::format("{}instruction {} ({}) {} ms", i ? ", " : "", longest[i].instruction,
                        instructionLabel(executor.plan(), executor.graph(), longest[i].instruction),
                        (longest[i].end - longest[i].begin) / 1'000'000);
  snapshot::Alert alert =
      makeAlert(snapshot::Alert::INFO, "long_instruction",
                fmt::format("{} instruction{} ran longer than {} ms, and cancelling waits for the one that runs: {}{}",
                            longest.size(), longest.size() == 1 ? "" : "s", longMs, text, longest.size() > 5 ? " …" : ""));
  alert.set_node(executor.plan().instructions[static_cast<std::size_t>(longest.front().instruction)].node.index);
  log.raise(alert);
}

// How steps come to a device that has graphs, when that changes. The first step of a plan always goes one by one.
void tellOfIssue(const Executor& executor, BuildLog& log) {
  Device& device = executor.device();
  if (!graphsOf(device)) return;
  const StepIssue& issue = executor.issue();
  const std::string what =
      issue.graphs == 0
          ? fmt::format("instruction by instruction: {}", issue.reason)
          : fmt::format(
                "{} recorded graph{} of {} kernels and copies{}", issue.graphs, issue.graphs == 1 ? "" : "s",
                issue.operations,
                issue.alone == 0 ? "" : fmt::format(", and {} instructions beside them: {}", issue.alone, issue.reason));
  log.raise(makeAlert(snapshot::Alert::INFO, "device_graphs",
                      fmt::format("a step is put on '{}' {}{}", device.facts().name, issue.graphs == 0 ? "" : "as ", what)));
}

}  // namespace stepscope

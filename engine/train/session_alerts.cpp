#include "engine/train/session_alerts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "engine/snapshot/utf8.h"
#include "engine/step/breakpoint.h"

namespace stepscope {

void tellWhatTheFileLacks(std::optional<StateNames>& loaded, const SymbolicStep& step, BuildLog& log) {
  if (!loaded) return;
  const StateNames file = std::move(*loaded);
  loaded.reset();
  std::vector<std::string> parameters, states;
  for (const ValueId id : step.trained)
    if (!file.names.contains(step.graph.value(id).name)) parameters.push_back(step.graph.value(id).name);
  if (file.resumed)
    for (const StateUpdate& update : step.graph.stateUpdates) {
      const Value& value = step.graph.value(update.state);
      if (value.role == ValueRole::kState && !file.names.contains(value.name)) states.push_back(value.name);
    }
  const auto tell = [&](const std::vector<std::string>& names, std::string_view what, std::string_view instead) {
    if (names.empty()) return;
    constexpr std::size_t kShown = 3;
    std::string shown;
    for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) shown += fmt::format("{}'{}'", i ? ", " : "", names[i]);
    if (names.size() > kShown) shown += fmt::format(" and {} more", names.size() - kShown);
    log.warn("state_incomplete", toUtf8(fmt::format("state '{}': no {} {}; {}", file.path.string(), what, shown, instead)));
  };
  const auto tellOfRound = [&](bool unknown, std::string_view what, std::string_view instead) {
    if (unknown)
      log.warn(
          "state_incomplete",
          toUtf8(fmt::format("state '{}': saved after {} micro step{} of an update, by a build that did not note {}; {}",
                             file.path.string(), file.micro, file.micro == 1 ? "" : "s", what, instead)));
  };
  const TrainOptions& options = step.request.options;
  tellOfRound(
      file.roundUnknown, "how many it has",
      fmt::format("taken for {}, as option accumulate says; with another number the update is wrong", options.accumulate));
  tellOfRound(file.scaleUnknown, "the loss scale of its sums of gradients",
              fmt::format("taken for {}; with another one the update is wrong",
                          file.scaleTaken > 0 ? fmt::format("{}, its dynamic one", file.scaleTaken)
                                              : std::string("that of this run")));
  tell(parameters, "parameter", "what the model has is trained from");
  tell(states, "optimizer state", "it begins with zeros");
}

std::vector<std::string> idlePredicates(const std::vector<snapshot::Breakpoint>& breakpoints, const Graph& graph,
                                        bool reads) {
  std::vector<std::string> said;
  for (const snapshot::Breakpoint& b : breakpoints) {
    if (!b.enabled() || b.condition_case() != snapshot::Breakpoint::kPredicate) continue;
    const auto predicate = parsePredicate(b.predicate());
    if (!predicate) continue;
    const ValueId value = graph.findValue(predicate->value);
    const bool updated = std::any_of(graph.stateUpdates.begin(), graph.stateUpdates.end(),
                                     [&](const StateUpdate& update) { return update.state == value; });
    if (value && (reads || updated || graph.value(value).role == ValueRole::kNodeOutput)) continue;
    const std::string name = toUtf8(predicate->value);
    said.push_back(fmt::format("breakpoint {}: '{}' stops nowhere: {}", b.id(), toUtf8(b.predicate()),
                               value ? fmt::format("no instruction of the step that runs writes '{}'", name)
                                     : fmt::format("the step that runs has no value '{}'", name)));
  }
  return said;
}

// Not an error: another variant, or an option that a pass obeys, may bring the value back.
void tellOfIdlePredicates(const std::vector<snapshot::Breakpoint>& breakpoints, const Graph& graph, BuildLog& log) {
  for (std::string& text : idlePredicates(breakpoints, graph, false)) log.warn("breakpoint_without_value", std::move(text));
}

}  // namespace stepscope

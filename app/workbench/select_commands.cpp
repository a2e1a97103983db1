// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/select_commands.h"

#include <algorithm>
#include <utility>

#include "app/workbench/actions.h"
#include "app/workbench/panel_board.h"
#include "app/workbench/questions.h"
#include "app/workbench/status_line.h"
#include "views/common/format.h"
#include "views/common/names.h"

namespace stepscope {

SelectCommands::SelectCommands(const WindowParts& parts) : parts_(parts), selection_(parts.selection), store_(parts.store) {
  const auto on = [this](const char* id, auto&& slot) {
    connect(parts_.actions[QLatin1String(id)], &QAction::triggered, this, std::forward<decltype(slot)>(slot));
  };
  on("back", [this] { selection_.goBack(); });
  on("forward", [this] { selection_.goForward(); });
  on("goto_number", [this] {
    if (!store_.plan()) return;
    askNumber(&parts_.window, QStringLiteral("Go to instruction"), QStringLiteral("Number of the instruction"),
              std::max(0, selection_.selection().instruction), 0, store_.plan()->size() - 1,
              [this](int n) { selection_.select(Selection::ofInstruction(n)); });
  });
  on("next_alert", [this] { nextAlert(); });
  on("next_instruction", [this] { moveBy(1); });
  on("previous_instruction", [this] { moveBy(-1); });
  on("select_current", [this] {
    if (selection_.currentInstruction() >= 0) selection_.select(Selection::ofInstruction(selection_.currentInstruction()));
  });
  on("select_forward", [this] { selectForward(); });
  on("select_gradient", [this] { selectGradient(); });
  on("alerts_clear", [this] { store_.clearAlerts(); });
  connect(&store_, &SnapshotStore::alertsChanged, this, [this] { alertPlace_ = -1; });
}

void SelectCommands::selectForward() {
  if (!store_.graph()) return;
  const int forward = store_.graph()->forwardOf(selection_.selection().node);
  if (forward >= 0) {
    selection_.select(Selection::ofNode(forward));
  } else {
    parts_.status.note(QStringLiteral("This node was not made from a forward node"));
  }
}

// From one of the gradients on to the next, so that the same key goes round them.
void SelectCommands::selectGradient() {
  if (!store_.graph()) return;
  const GraphSnapshot& graph = *store_.graph();
  const int from = selection_.selection().node, made = graph.forwardOf(from);
  const int forward = made >= 0 ? made : from;
  std::vector<int> gradients;
  for (const int id : graph.mirrored(forward))
    if (graph.node(id)->phase() == snapshot::BACKWARD) gradients.push_back(id);
  if (gradients.empty()) return parts_.status.note(QStringLiteral("No gradient flows through this node"));
  const auto present = std::find(gradients.begin(), gradients.end(), from);
  const auto next =
      present == gradients.end() || std::next(present) == gradients.end() ? gradients.begin() : std::next(present);
  selection_.select(Selection::ofNode(*next));
  if (gradients.size() > 1)
    parts_.status.note(QStringLiteral("Node %1 of the %2 that make the gradients of %3")
                           .arg(next - gradients.begin() + 1)
                           .arg(gradients.size())
                           .arg(names::node(graph, forward)));
}

void SelectCommands::nextAlert() {
  const auto& alerts = store_.alerts();
  if (alerts.empty()) {
    parts_.status.note(QStringLiteral("No alerts"));
    return;
  }
  alertPlace_ = (alertPlace_ + 1) % static_cast<int>(alerts.size());
  const auto& alert = alerts[static_cast<std::size_t>(alertPlace_)];
  Selection s;
  s.node = alert.node();
  s.value = alert.value();
  s.instruction = alert.instruction();
  if (!s.empty() && (s.node >= 0 || s.value >= 0 || s.instruction >= 0)) selection_.select(s);
  parts_.board.show(QStringLiteral("alerts"));
  parts_.status.note(format::visible(alert.message()));
}

void SelectCommands::moveBy(int instructions) {
  if (!store_.plan() || store_.plan()->size() == 0) return;
  const int from = selection_.selection().instruction >= 0 ? selection_.selection().instruction
                                                           : std::max(0, selection_.currentInstruction());
  selection_.select(Selection::ofInstruction(std::clamp(from + instructions, 0, store_.plan()->size() - 1)));
}

void SelectCommands::update() {
  const auto enable = [this](const char* id, bool enabled) { parts_.actions[QLatin1String(id)]->setEnabled(enabled); };
  enable("back", selection_.canGoBack());
  enable("forward", selection_.canGoForward());
  for (const char* id : {"goto", "goto_number", "next_instruction", "previous_instruction"})
    enable(id, store_.plan() != nullptr);
  enable("select_current", selection_.currentInstruction() >= 0);
  for (const char* id : {"select_forward", "select_gradient"}) enable(id, selection_.selection().node >= 0);
}

}  // namespace stepscope

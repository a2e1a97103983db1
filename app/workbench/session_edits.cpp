// SPDX-License-Identifier: GPL-3.0-or-later
// Values that are set by hand: asked for, remembered for a worker that comes after, told of in the step.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "app/workbench/session.h"
#include "views/common/findings.h"

namespace stepscope {
namespace {
snapshot::Request editRequest(int value, const std::vector<qint64>& index, double number) {
  snapshot::Request request;
  auto* edit = request.mutable_edit();
  edit->set_value(value);
  for (const qint64 i : index) edit->add_index(i);
  edit->set_number(number);
  return request;
}

std::string editText(const snapshot::EditTensor& edit) {
  if (!edit.path().empty()) return fmt::format("loaded from '{}'", edit.path().substr(edit.path().rfind('/') + 1));
  if (edit.fill()) return fmt::format("filled with {:g}", edit.number());
  return fmt::format("element [{}] set to {:g}", fmt::join(edit.index(), ", "), edit.number());
}
}  // namespace

void Session::editTensor(int value, const std::vector<qint64>& index, double number, bool fill) {
  snapshot::Request request = editRequest(value, index, number);
  request.mutable_edit()->set_fill(fill);
  edit(std::move(request));
}

void Session::editElement(int value, const std::vector<qint64>& index, double number, double before, bool undoable) {
  const auto answer = [this, value, index](const QString& problem) { store_.findings().setEdit({value, index, problem}); };
  if (busy_) return answer(tr("Still %1; Esc cancels").arg(client_.activity()));
  edit(
      editRequest(value, index, number), before,
      [this, answer, edit = ElementEdit{value, index, before, number}, undoable] {
        answer({});
        if (undoable) emit elementEdited(edit);
      },
      answer);
}

bool Session::takesBack(const Edit& later, const Edit& earlier) {
  const auto &a = earlier.request.edit(), &b = later.request.edit();
  const bool sameElement =
      a.value() == b.value() && std::equal(a.index().begin(), a.index().end(), b.index().begin(), b.index().end());
  return earlier.before && later.before && sameElement && later.step == earlier.step &&
         later.instruction == earlier.instruction && b.number() == *earlier.before;
}

void Session::edit(snapshot::Request request, std::optional<double> before, Then then,
                   std::function<void(const QString&)> refused) {
  if (refuse()) return;
  const auto& p = store_.position();
  const Edit done{p.step(), p.in_step() ? p.instruction() : -1, request, before};
  move(
      std::move(request), tr("editing"),
      [this, done, then = std::move(then)] {
        edits_.push_back(done);
        if (then) then();
      },
      {}, std::move(refused));
}

void Session::moveEdits(const std::shared_ptr<const GraphSnapshot>& before) {
  const snapshot::Position& p = store_.position();
  const auto& after = store_.graph();
  if (!p.in_step() || !before || !after || before == after) return;
  for (Edit& e : edits_) {
    if (e.step != p.step() || e.instruction < 0) continue;
    const auto* value = before->value(e.request.edit().value());
    const auto& values = after->graph().values();
    const auto same =
        std::find_if(values.begin(), values.end(), [value](const auto& v) { return value && v.name() == value->name(); });
    if (same != values.end()) e.request.mutable_edit()->set_value(same->id());
    e.instruction = std::min(e.instruction, p.instruction());
  }
}

void Session::tellOfHand(std::int64_t step) {
  snapshot::Alert alert;
  alert.set_severity(snapshot::Alert::INFO);
  alert.set_step(step);
  alert.set_node(-1);
  alert.set_value(-1);
  std::vector<const Edit*> standing;
  for (const Edit& e : edits_) {
    if (e.step != step) continue;
    if (!standing.empty() && takesBack(e, *standing.back()))
      standing.pop_back();
    else
      standing.push_back(&e);
  }
  for (const Edit* e : standing) {
    const auto& edit = e->request.edit();
    const auto* value = store_.graph() ? store_.graph()->value(edit.value()) : nullptr;
    alert.set_code("edited");
    alert.set_value(edit.value());
    alert.set_node(value ? store_.graph()->producer(edit.value()) : -1);
    alert.set_instruction(e->instruction);
    alert.set_message(fmt::format("{} by hand: {}", value ? '\'' + value->name() + '\'' : "a value", editText(edit)));
    emit alertRaised(alert);
  }
  if (stops_.count > 0) {
    alert.set_code("stopped");
    alert.set_value(-1);
    alert.set_node(-1);
    alert.set_instruction(stops_.first);
    alert.set_message(fmt::format("stopped {}{}; the time of the step includes the waiting",
                                  stops_.count == 1 ? "once" : fmt::format("{} times", stops_.count),
                                  stops_.breaks.empty() ? "" : fmt::format(" ({})", fmt::join(stops_.breaks, "; "))));
    emit alertRaised(alert);
  }
  stops_ = {};
}

}  // namespace stepscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/session_edits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <algorithm>
#include <iterator>
#include <utility>

#include "app/workbench/session/model_session.h"
#include "app/workbench/session/session_stepper.h"
#include "engine/snapshot/alert.h"
#include "engine/snapshot/units.h"
#include "views/common/findings.h"
#include "views/common/format.h"

namespace stepscope {
namespace {
constexpr qint64 kMostFileBytes = 4LL << 30;  // of a file that is copied

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
  if (edit.fill()) return fmt::format("filled with {:g}", units::signless(edit.number()));
  return fmt::format("element [{}] set to {:g}", fmt::join(edit.index(), ", "), units::signless(edit.number()));
}
}  // namespace

void SessionEdits::editTensor(int value, const std::vector<qint64>& index, double number, bool fill) {
  snapshot::Request request = editRequest(value, index, number);
  request.mutable_edit()->set_fill(fill);
  edit(std::move(request));
}

void SessionEdits::editElement(int value, const std::vector<qint64>& index, double number, double before, bool undoable) {
  const auto answer = [this, value, index](const QString& problem) { store_.findings().setEdit({value, index, problem}); };
  if (link_.busy()) return answer(QStringLiteral("Still %1; Esc cancels").arg(link_.client().activity()));
  edit(
      editRequest(value, index, number), before,
      [this, answer, edit = ElementEdit{value, index, before, number}, undoable] {
        answer({});
        if (undoable) emit session_.elementEdited(edit);
      },
      answer);
}

bool SessionEdits::takesBack(const Edit& later, const Edit& earlier) {
  const auto &a = earlier.request.edit(), &b = later.request.edit();
  const bool sameElement =
      a.value() == b.value() && std::equal(a.index().begin(), a.index().end(), b.index().begin(), b.index().end());
  return earlier.before && later.before && sameElement && later.step == earlier.step &&
         later.instruction == earlier.instruction && b.number() == *earlier.before;
}

void SessionEdits::edit(snapshot::Request request, std::optional<double> before, Then then,
                        std::function<void(const QString&)> refused) {
  if (link_.refuse()) return;
  const auto& p = store_.position();
  const Edit done{p.step(), p.in_step() ? p.instruction() : -1, request, before};
  link_.move(
      std::move(request), QStringLiteral("editing"),
      [this, done, then = std::move(then)] {
        edits_.push_back(done);
        tell();
        if (then) then();
      },
      {}, std::move(refused));
}

void SessionEdits::moveEdits(const GraphPtr& before) {
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
  tell();
}

std::vector<const SessionEdits::Edit*> SessionEdits::standing() const {
  std::vector<const Edit*> standing;
  for (const Edit& e : edits_) {
    if (!standing.empty() && takesBack(e, *standing.back()))
      standing.pop_back();
    else
      standing.push_back(&e);
  }
  return standing;
}

void SessionEdits::tell() {
  std::vector<EditedValue> edited;
  for (const Edit* e : standing()) edited.push_back({e->request.edit().value(), e->step, e->instruction});
  store_.findings().setEdited(std::move(edited));
}

void SessionEdits::leave() {
  edits_.clear();
  tell();
}

void SessionEdits::tellOfHand(std::int64_t step) {
  for (const Edit* e : standing()) {
    if (e->step != step) continue;
    const auto& edit = e->request.edit();
    const auto* value = store_.graph() ? store_.graph()->value(edit.value()) : nullptr;
    snapshot::Alert alert =
        makeAlert(snapshot::Alert::INFO, "edited",
                  fmt::format("{} by hand: {}", value ? '\'' + value->name() + '\'' : "a value", editText(edit)));
    alert.set_step(step);
    alert.set_value(edit.value());
    alert.set_node(value ? store_.graph()->producer(edit.value()) : -1);
    alert.set_instruction(e->instruction);
    store_.addAlert(alert);
    emit session_.alertRaised(alert);
  }
  const Stops stops = parts_.stepper.takeStops();
  if (stops.count > 0) {
    snapshot::Alert alert =
        makeAlert(snapshot::Alert::INFO, "stopped",
                  fmt::format("stopped {}{}; the time of the step includes the waiting",
                              stops.count == 1 ? "once" : fmt::format("{} times", stops.count),
                              stops.breaks.empty() ? "" : fmt::format(" ({})", fmt::join(stops.breaks, "; "))));
    alert.set_step(step);
    alert.set_instruction(stops.first);
    emit session_.alertRaised(alert);
  }
}

void SessionEdits::takenBack(const snapshot::Position& p) {
  std::erase_if(edits_, [&p](const Edit& e) { return e.step == p.step() && e.instruction > p.instruction(); });
  tell();
}

void SessionEdits::stepAbandoned(std::int64_t step) {
  std::erase_if(edits_, [step](const Edit& e) { return e.step >= step && e.instruction >= 0; });
  tell();
}

std::vector<SessionEdits::Edit> SessionEdits::ofStep(std::int64_t step) const {
  std::vector<Edit> edits;
  std::copy_if(edits_.begin(), edits_.end(), std::back_inserter(edits), [step](const Edit& e) { return e.step == step; });
  return edits;
}

void SessionEdits::takeOver(const std::vector<Edit>& edits) {
  edits_.insert(edits_.end(), edits.begin(), edits.end());
  tell();
}

void SessionEdits::rewound(std::int64_t step) {
  std::erase_if(edits_, [step](const Edit& e) { return e.step > step || (e.step == step && e.instruction >= 0); });
  tell();
}

void SessionEdits::loadTensor(int value, const QString& path) {
  if (link_.refuse()) return;
  // Where the worker is on another machine, the path is of that one.
  if (!link_.client().host().local()) return copied(value, path, path, {});
  // A copy: the edit is repeated from it when a worker that died comes back, whatever became of the file.
  const QString folder = QString::number(++copies_);  // its own, so that messages name the file as the user does
  QDir(scratch_.path()).mkdir(folder);
  const QString copy = scratch_.filePath(folder + '/' + QFileInfo(path).fileName());
  link_.setBusy(true);
  files_.start([this, value, path, copy] {
    QString why;
    const QFileInfo info(path);
    QFile file(path);
    if (!info.isFile()) {
      why = QStringLiteral("not a file; expected a .npy array");
    } else if (info.size() > kMostFileBytes) {
      why = QStringLiteral("%1 bytes; expected at most %2").arg(info.size()).arg(kMostFileBytes);
    } else if (!file.copy(copy)) {
      why = file.errorString();
    }
    QMetaObject::invokeMethod(
        this, [this, value, path, copy, why] { copied(value, path, copy, why); }, Qt::QueuedConnection);
  });
}

void SessionEdits::copied(int value, const QString& path, const QString& copy, const QString& why) {
  link_.setBusy(false);
  if (!why.isEmpty()) {
    emit session_.problem(QStringLiteral("array '%1': %2").arg(format::visible(path), why), {});
    return;
  }
  snapshot::Request request;
  request.mutable_edit()->set_value(value);
  request.mutable_edit()->set_path(copy.toStdString());
  edit(std::move(request));
}

}  // namespace stepscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/return_path.h"

#include <QFileInfo>
#include <QJsonDocument>
#include <QStandardPaths>
#include <algorithm>
#include <utility>

#include "app/workbench/model_opening.h"
#include "app/workbench/notice_bar.h"
#include "app/workbench/panel_board.h"
#include "app/workbench/recording.h"
#include "app/workbench/session/model_session.h"
#include "views/common/file_name.h"
#include "views/common/format.h"

namespace stepscope {
namespace {

constexpr int kKeepEveryMs = 1000;
constexpr qint64 kMostRepeated = 10'000;  // steps

QByteArray bytesOf(const google::protobuf::Message& message) {
  const std::string text = message.SerializeAsString();
  return {text.data(), static_cast<qsizetype>(text.size())};
}

}  // namespace

ReturnPath::ReturnPath(const WindowParts& parts, ModelOpening& opening, Views views, bool remember)
    : parts_(parts), session_(parts.session), store_(parts.store), opening_(opening), views_(std::move(views)) {
  connect(&opening_, &ModelOpening::begun, this, [this] {
    back_.reset();
    offered_.reset();
  });
  connect(&session_, &ModelSession::builtChanged, this, &ReturnPath::goOn);
  connect(&session_, &ModelSession::busyChanged, this, &ReturnPath::goOn);
  if (!remember) return;
  mark_ = std::make_unique<SessionMark>(QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) +
                                        QStringLiteral("/sessions"));
  timer_.setSingleShot(true);
  timer_.setInterval(kKeepEveryMs);
  connect(&timer_, &QTimer::timeout, this, &ReturnPath::keep);
  const auto soon = [this] {
    if (!timer_.isActive()) timer_.start();
  };
  connect(&store_, &SnapshotStore::positionChanged, this, soon);
  connect(&parts_.selection, &SelectionModel::selectionChanged, this, soon);
  connect(&session_, &ModelSession::builtChanged, this, soon);
  connect(&parts_.recording, &Recording::opened, this, soon);
  connect(&session_, &ModelSession::modelInspected, this, [this] {
    if (!session_.built() && !store_.building() && session_.client().host().local()) offer(session_.modelPath());
  });
  connect(&opening_, &ModelOpening::peeked, this, [this](const QString& path) {
    if (path != session_.modelPath()) offer(path);
  });
  connect(&parts_.board, &PanelBoard::changed, this, soon);
  connect(&parts_.board, &PanelBoard::rearranged, this, soon);
}

void ReturnPath::drop() {
  timer_.stop();
  if (mark_) mark_->drop();
}

void ReturnPath::keep() {
  if (session_.attached()) return;  // there is no way back into a script
  if (back_) return;                // until it is reached, the place to go back to is that one
  const bool recorded = store_.readOnly() && store_.plan();
  if (!session_.built() && !recorded) return mark_->drop();
  SessionPlace place = present();
  if (recorded) {
    place = {};
    place.path = store_.project().projectPath();
    place.layout = layout();
    place.selectedInstruction = parts_.selection.selection().instruction;
    place.selectedValue = parts_.selection.selection().value;
  }
  mark_->keep(place);
}

QByteArray ReturnPath::layout() const { return QJsonDocument(views_.present().toJson()).toJson(QJsonDocument::Compact); }

SessionPlace ReturnPath::present() const {
  snapshot::SetBreakpoints breakpoints;
  for (const auto& b : store_.breakpoints()) *breakpoints.add_breakpoints() = b;
  const auto& p = store_.position();
  return {.path = session_.modelPath(),
          .configuration = bytesOf(session_.configuration()),
          .breakpoints = bytesOf(breakpoints),
          .step = p.step(),
          .instruction = p.in_step() ? p.instruction() : -1,
          .selectedInstruction = parts_.selection.selection().instruction,
          .selectedValue = parts_.selection.selection().value,
          .layout = layout(),
          .edited = session_.edited()};
}

void ReturnPath::offer(const QString& path) {
  if (back_) return;  // it is on the way
  QString problem;
  const std::optional<SessionPlace> lost = mark_ ? mark_->takeLost(&problem, path) : std::nullopt;
  if (!problem.isEmpty()) store_.addLog({QStringLiteral("warning"), problem});
  if (!lost || !QFileInfo::exists(lost->path)) return;
  const QString name = format::fileName(lost->path);
  QString text;
  if (lost->configuration.isEmpty()) {
    text = QStringLiteral("The window did not end as it should. %1 was open.").arg(name);
  } else {
    const QString where = lost->instruction > 0
                              ? QStringLiteral("step %1, before instruction %2").arg(lost->step).arg(lost->instruction)
                              : QStringLiteral("step %1").arg(lost->step);
    text = QStringLiteral("The window did not end as it should. %1 was open at %2.").arg(name, where);
    if (lost->step > kMostRepeated)
      text += ' ' + QStringLiteral("Going back builds it and begins at step 0.");
    else if (lost->step > 0)
      text += ' ' + (lost->step == 1 ? QStringLiteral("Going back runs the step again.")
                                     : QStringLiteral("Going back runs its %1 steps again.").arg(lost->step));
    if (lost->edited) text += ' ' + QStringLiteral("Values that were set by hand are not set again.");
  }
  if (lost->step <= kMostRepeated) offered_ = lost;
  parts_.notice.showStop(text, QStringLiteral("Go back"), [this, lost = *lost] { goBack(lost); });
}

void ReturnPath::goBack(const SessionPlace& place) {
  if (const ViewLayout layout = ViewLayout::fromJson(QJsonDocument::fromJson(place.layout).object()); !layout.name.isEmpty())
    views_.arrange(layout);
  if (place.configuration.isEmpty()) return opening_.open(place.path);
  snapshot::Configure configuration;
  if (!configuration.ParseFromArray(place.configuration.constData(), static_cast<int>(place.configuration.size())))
    return opening_.open(place.path);
  opening_.openAndBuild(place.path, configuration);
  back_ = place;
  moves_ = 0;
}

std::vector<SessionEdits::Edit> ReturnPath::edits() {
  std::vector<SessionEdits::Edit> found;
  QStringList lost;
  for (const PlaceEdit& e : back_->edits) {
    snapshot::Request request;
    if (!request.ParseFromArray(e.request.constData(), static_cast<int>(e.request.size())) || !request.has_edit()) {
      lost << format::visible(e.value);
      continue;
    }
    if (isDropped(e)) continue;  // told when the place was offered
    const auto& values = store_.graph()->graph().values();
    const auto named = [name = e.value.toStdString()](const auto& v) { return v.name() == name; };
    const auto* value = store_.graph()->value(request.edit().value());
    if (!value || !named(*value)) {
      const auto same = std::find_if(values.begin(), values.end(), named);
      value = same == values.end() ? nullptr : &*same;
    }
    if (value) {
      request.mutable_edit()->set_value(value->id());
      found.push_back({back_->step, e.instruction, request, e.before});
    } else {
      lost << format::visible(e.value);
    }
  }
  if (!lost.isEmpty())
    parts_.notice.showProblem(
        QStringLiteral("Set by hand before the window was closed, and not set again: %1. This build has no such value")
            .arg(lost.join(QStringLiteral(", "))),
        {}, {});
  return found;
}

// One move at a time; what ends somewhere else, by a cancel or an error, is where the person wants to be.
void ReturnPath::goOn() {
  if (!back_ || !session_.built() || session_.busy() || session_.running()) return;
  QTimer::singleShot(0, this, [this] {
    if (!back_ || !session_.built() || session_.busy() || session_.running()) return;
    const auto& p = store_.position();
    if (moves_ == 0) {
      ++moves_;
      if (!back_->state.isEmpty()) {
        moves_ = 2;
        return session_.takeUp(back_->step, back_->state, back_->instruction, edits());
      }
      if (back_->step > 0 && back_->step <= kMostRepeated) return session_.train(back_->step);
    }
    const bool there = p.step() == back_->step;
    if (moves_ == 1) {
      ++moves_;
      if (there && !p.in_step() && back_->instruction >= 0) return session_.runTo(back_->instruction);
    }
    const SessionPlace place = *std::exchange(back_, std::nullopt);
    snapshot::SetBreakpoints breakpoints;
    if (breakpoints.ParseFromArray(place.breakpoints.constData(), static_cast<int>(place.breakpoints.size())))
      session_.setBreakpoints({breakpoints.breakpoints().begin(), breakpoints.breakpoints().end()});
    Selection s = Selection::ofInstruction(place.selectedInstruction);
    s.value = place.selectedValue;
    const bool known = store_.plan() && s.instruction < store_.plan()->size() && store_.graph() &&
                       (s.value < 0 || store_.graph()->value(s.value));
    if (there && known && !s.empty()) parts_.selection.select(s);
  });
}

}  // namespace stepscope

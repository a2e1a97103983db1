// SPDX-License-Identifier: GPL-3.0-or-later
// What a window that ended by itself leaves behind, and the way back to it.
#include <QApplication>
#include <QFileInfo>
#include <QJsonDocument>
#include <QStandardPaths>
#include <algorithm>
#include <utility>

#include "app/workbench/bug_bundle.h"
#include "app/workbench/main_window.h"
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

void MainWindow::connectReturn() {
  if (!remember_) return;
  mark_ = std::make_unique<SessionMark>(QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) +
                                        QStringLiteral("/sessions"));
  markTimer_.setSingleShot(true);
  markTimer_.setInterval(kKeepEveryMs);
  connect(&markTimer_, &QTimer::timeout, this, &MainWindow::keepPlace);
  const auto soon = [this] {
    if (!markTimer_.isActive()) markTimer_.start();
  };
  connect(&store_, &SnapshotStore::positionChanged, this, soon);
  connect(&selection_, &SelectionModel::selectionChanged, this, soon);
  connect(&session_, &Session::builtChanged, this, soon);
  connect(&recording_, &Recording::opened, this, soon);
  connect(board_, &PanelBoard::changed, this, soon);
  connect(board_, &PanelBoard::rearranged, this, soon);
  connect(&session_, &Session::builtChanged, this, &MainWindow::continueBack);
  connect(&session_, &Session::busyChanged, this, &MainWindow::continueBack);
}

// What a person can do about it stands in the notice; what a bug report needs is written beside.
void MainWindow::tellOfBuildDeath(const BuildDeath& death) {
  QString where = tr("phase '%1'").arg(death.phase);
  if (!death.pass.isEmpty()) where += tr(", pass '%1'").arg(death.pass);
  QString text = tr("%1, while building: %2.").arg(death.reason, where);
  const QString last = death.graphs.empty() ? QString() : format::visible(death.graphs.back()->graph().phase());
  if (death.besidePlan) text += ' ' + tr("What is shown is the plan before it; Restart worker returns to that.");
  if (!last.isEmpty())
    text += ' ' + (death.besidePlan ? tr("The graphs of the new build up to '%1' can be opened.")
                                    : tr("The graphs up to '%1' are open."))
                      .arg(last);
  const auto show = [this, death](const QString& said) {
    if (death.passCanBeOff)
      notice_->showProblem(said, tr("Build without %1").arg(death.pass),
                           [this, death] { session_.buildWithout(death.pass); });
    else
      notice_->showProblem(said, tr("Restart worker"), [this] { session_.restart(); });
  };
  show(text);
  BugFacts facts{death, session_.modelPath(), QApplication::applicationVersion(), store_.machine(), session_.configuration(),
                 {}};
  constexpr std::ptrdiff_t kLines = 1000;
  const auto& log = store_.log();
  for (auto line = log.end() - std::min(std::ptrdiff_t(log.size()), kLines); line != log.end(); ++line)
    facts.log << line->level + ' ' + line->text;
  const QString among = QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) + QStringLiteral("/reports");
  bundles_.start([this, facts = std::move(facts), among, text, show] {
    const QString path = writeBugBundle(among, facts);
    QMetaObject::invokeMethod(
        this,
        [this, path, text, show] {
          if (!notice_->isProblem() || notice_->text() != text) return;  // something else is shown by now
          show(text + ' ' +
               (path.isEmpty() ? tr("A bundle for a bug report could not be written.")
                               : tr("For a bug report: %1").arg(format::visible(path))));
        },
        Qt::QueuedConnection);
  });
}

void MainWindow::keepPlace() {
  if (back_) return;  // until it is reached, the place to go back to is that one
  const bool recorded = store_.readOnly() && store_.plan();
  if (!session_.built() && !recorded) return mark_->drop();
  SessionPlace place;
  place.path = recorded ? store_.project().projectPath() : session_.modelPath();
  place.layout = QJsonDocument(board_->present(layoutName_).toJson()).toJson(QJsonDocument::Compact);
  place.selectedInstruction = selection_.selection().instruction;
  place.selectedValue = selection_.selection().value;
  if (!recorded) {
    place.configuration = bytesOf(session_.configuration());
    snapshot::SetBreakpoints breakpoints;
    for (const auto& b : store_.breakpoints()) *breakpoints.add_breakpoints() = b;
    place.breakpoints = bytesOf(breakpoints);
    place.step = store_.position().step();
    place.instruction = store_.position().in_step() ? store_.position().instruction() : -1;
    place.edited = session_.edited();
  }
  mark_->keep(place);
}

void MainWindow::offerReturn() {
  QString problem;
  const std::optional<SessionPlace> lost = mark_ ? mark_->takeLost(&problem) : std::nullopt;
  if (!problem.isEmpty()) store_.addLog({QStringLiteral("warning"), problem, 0});
  if (!lost || !QFileInfo::exists(lost->path)) return;
  const QString name = format::fileName(lost->path);
  QString text;
  if (lost->configuration.isEmpty()) {
    text = tr("The window did not end as it should. %1 was open.").arg(name);
  } else {
    const QString where = lost->instruction > 0 ? tr("step %1, before instruction %2").arg(lost->step).arg(lost->instruction)
                                                : tr("step %1").arg(lost->step);
    text = tr("The window did not end as it should. %1 was open at %2.").arg(name, where);
    if (lost->step > kMostRepeated)
      text += ' ' + tr("Going back builds it and begins at step 0.");
    else if (lost->step > 0)
      text += ' ' + (lost->step == 1 ? tr("Going back runs the step again.")
                                     : tr("Going back runs its %1 steps again.").arg(lost->step));
    if (lost->edited) text += ' ' + tr("Values that were set by hand are not set again.");
  }
  notice_->showStop(text, tr("Go back"), [this, lost = *lost] { goBack(lost); });
}

void MainWindow::goBack(const SessionPlace& place) {
  if (const Layout layout = Layout::fromJson(QJsonDocument::fromJson(place.layout).object()); !layout.name.isEmpty())
    arrange(layout);
  if (place.configuration.isEmpty()) return openPath(place.path);
  snapshot::Configure configuration;
  if (!configuration.ParseFromArray(place.configuration.constData(), static_cast<int>(place.configuration.size())))
    return openPath(place.path);
  openAndBuild(place.path, configuration);
  back_ = place;
  backMoves_ = 0;
}

// One move at a time; what ends somewhere else, by a cancel or an error, is where the person wants to be.
void MainWindow::continueBack() {
  if (!back_ || !session_.built() || session_.busy() || session_.running()) return;
  QTimer::singleShot(0, this, [this] {
    if (!back_ || !session_.built() || session_.busy() || session_.running()) return;
    const auto& p = store_.position();
    if (backMoves_ == 0) {
      ++backMoves_;
      if (back_->step > 0 && back_->step <= kMostRepeated) return session_.train(back_->step);
    }
    const bool there = p.step() == back_->step;
    if (backMoves_ == 1) {
      ++backMoves_;
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
    if (there && known && !s.empty()) selection_.select(s);
  });
}

}  // namespace stepscope

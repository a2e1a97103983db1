// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/run_commands.h"

#include <QApplication>
#include <QKeyEvent>
#include <algorithm>
#include <utility>

#include "app/workbench/actions.h"
#include "app/workbench/notice_bar.h"
#include "app/workbench/panel_board.h"
#include "app/workbench/questions.h"
#include "app/workbench/recording.h"
#include "app/workbench/rewind_dialog.h"
#include "app/workbench/session/model_session.h"
#include "app/workbench/status_line.h"
#include "views/common/format.h"
#include "views/common/script_drives.h"

namespace stepscope {

RunCommands::RunCommands(const WindowParts& parts) : parts_(parts), session_(parts.session) {
  connectSteps();
  connectRuns();
  qApp->installEventFilter(this);
  // A worker that dies while nothing is asked of it changes nothing else.
  connect(&parts_.store, &SnapshotStore::workerChanged, this, &RunCommands::update);
  connect(&parts_.store.findings().recomputeStudy(), &Study::changed, this, &RunCommands::update);
  connect(&parts_.store.project(), &ProjectFacts::runsChanged, this, &RunCommands::update);
  connect(&ProjectReads::of(parts_.store.project()), &ProjectReads::changed, this, &RunCommands::update);
}

void RunCommands::connectSteps() {
  const auto on = [this](const char* id, auto&& slot) {
    connect(parts_.actions[QLatin1String(id)], &QAction::triggered, this, std::forward<decltype(slot)>(slot));
  };
  on("run", [this] {
    if (session_.running() || session_.busy())
      session_.pause();  // not every keyboard has a key for it
    else
      session_.run(false);
  });
  on("run_back", [this] { session_.run(true); });
  on("stop", [this] {
    if (!stop()) session_.pause();
  });
  on("cancel_reads", [this] { parts_.recording.reads().cancel(); });
  // Every press of a key is a move; a key that is held moves as often as the worker can follow.
  const auto move = [this, on](const char* id, auto&& make) {
    on(id, [this, make] {
      if (!heldKey_ || !session_.stepping()) make();
    });
  };
  move("step_back", [this] { session_.step(-1); });
  move("step", [this] { session_.step(1); });
  move("step_phase", [this] { session_.stepPhase(false); });
  move("step_phase_back", [this] { session_.stepPhase(true); });
  move("step_whole", [this] { session_.finishStep(); });
  on("run_here", [this] {
    if (const int selected = parts_.selection.selection().instruction; selected >= 0) {
      session_.runTo(selected);
    } else {
      parts_.status.note(QStringLiteral("Select an instruction to run to"));
    }
  });
  on("abandon", [this] { session_.abandon(); });
  on("breakpoint", [this] {
    if (const int selected = parts_.selection.selection().instruction; selected >= 0) session_.toggleBreakpoint(selected);
  });
  on("breakpoint_add", [this] { parts_.board.show(QStringLiteral("breakpoints")); });
}

bool RunCommands::stop() {
  const bool working = session_.working();
  if (working)
    session_.pause();
  else if (ProjectReads::of(parts_.store.project()).anyShown())
    parts_.recording.reads().cancel();
  else
    return false;
  return true;
}

// A shortcut does not say whether its key was pressed or is held; the event before it does.
bool RunCommands::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::ShortcutOverride) heldKey_ = static_cast<const QKeyEvent*>(event)->isAutoRepeat();
  if (event->type() == QEvent::MouseButtonPress) heldKey_ = false;
  return QObject::eventFilter(watched, event);
}

void RunCommands::connectRuns() {
  const auto on = [this](const char* id, auto&& slot) {
    connect(parts_.actions[QLatin1String(id)], &QAction::triggered, this, std::forward<decltype(slot)>(slot));
  };
  on("train", [this] {
    askNumber(&parts_.window, QStringLiteral("Train at full speed"), QStringLiteral("Number of training steps"), 100, 1,
              1'000'000, [this](int n) { session_.train(n); });
  });
  on("rewind", [this] {
    session_.askRewindWays([this](const RewindWays& ways) {
      auto* dialog = new RewindDialog(ways, parts_.recording.recording(), &parts_.window);
      connect(dialog, &RewindDialog::wanted, this, [this](qint64 step) { session_.rewind(step); });
      dialog->open();
    });
  });
  on("new_run", [this] {
    emit beginningAgain();
    session_.newRun();
    auto* once = new QObject(this);
    connect(&session_, &ModelSession::problem, once, &QObject::deleteLater);
    connect(&session_, &ModelSession::builtChanged, once, [this, once] {
      if (!session_.built()) return;
      once->deleteLater();
      parts_.status.note(QStringLiteral("A new run. Name it: Run, Name this run…; what is to differ: Options"));
    });
  });
  on("name_run", [this] { askForName(shownRun()); });
  connect(&parts_.wishes, &Wishes::nameRun, this, &RunCommands::askForName);
  on("restart", [this] {
    parts_.notice.clear();
    session_.restart();
  });
  on("compare_bits", [this] {
    parts_.board.show(QStringLiteral("determinism"));
    session_.compareBits();
  });
  on("determinism", [this] {
    parts_.board.show(QStringLiteral("determinism"));
    session_.determinism();
  });
  connect(&parts_.status, &StatusLine::workerClicked, &session_, &ModelSession::restart);
}

// The one that is shown of a recorded project; the newest is the one that is recorded.
qint64 RunCommands::shownRun() const {
  const auto& runs = parts_.store.project().runs();
  const qint64 shown = parts_.store.readOnly() ? parts_.recording.queries().run() : 0;
  return shown > 0 || runs.empty() ? shown : runs.back().id;
}

void RunCommands::askForName(qint64 run) {
  const auto& runs = parts_.store.project().runs();
  const auto entry = std::find_if(runs.begin(), runs.end(), [run](const RunEntry& r) { return r.id == run; });
  if (entry == runs.end()) return;
  askText(&parts_.window, QStringLiteral("Name run %1").arg(run), QStringLiteral("Name in the list of runs:"),
          format::visible(entry->name), QStringLiteral("name_run_dialog"),
          [this, run](const QString& name) { parts_.recording.nameRun(run, name); });
}

void RunCommands::update() {
  const bool model = session_.built() && session_.client().alive();
  const bool moving = session_.busy() || session_.running();
  const bool free = model && !moving;
  const bool selected = parts_.selection.selection().instruction >= 0;
  const auto& p = parts_.store.position();
  const auto enable = [this](const char* id, bool enabled) { parts_.actions[QLatin1String(id)]->setEnabled(enabled); };
  const bool more = model && session_.stepping();  // the next move waits for the one that runs
  const bool back = free && p.in_step() && p.instruction() > 0;
  for (const char* id : {"step", "step_phase", "step_whole"}) enable(id, free || more);
  for (const char* id : {"step_back", "step_phase_back"}) enable(id, back || more);
  for (const char* id : {"train", "compare_bits", "save_state", "new_run"}) enable(id, free);
  enable("run_back", free && p.in_step());  // at the begin of a step it says what goes further back
  enable("run", model);
  const bool reads = ProjectReads::of(parts_.store.project()).anyShown();
  enable("stop", moving || reads || parts_.store.findings().recomputeStudy().running());
  enable("cancel_reads", reads);
  enable("run_here", free && selected);
  enable("abandon", free && p.in_step());
  enable("rewind", free && p.step() > 0);
  const ProjectFacts& project = parts_.store.project();
  const bool recorded = parts_.store.readOnly() && !project.runs().empty();
  const QString unwritable = recorded ? project.whyNotWritable() : QString();
  enable("name_run", recorded ? unwritable.isEmpty() : session_.built() && parts_.recording.recording());
  QAction* name = parts_.actions[QStringLiteral("name_run")];
  name->setToolTip(unwritable.isEmpty() ? name->statusTip() : unwritable);
  enable("restart", !session_.modelPath().isEmpty());
  enable("configure", parts_.store.model() != nullptr && !session_.busy() && !parts_.store.readOnly());
  enable("determinism", parts_.store.plan() != nullptr);
  const bool stops = parts_.store.plan() && !parts_.store.readOnly();  // something that can run, and be stopped
  enable("breakpoint", stops && selected);
  enable("breakpoint_add", stops);
  enable("load_streams", true);
  // What a script does is not taken back, and what it is trained with is its own.
  for (const char* id : {"step_back", "step_phase_back", "run_back", "abandon", "rewind", "new_run", "save_state",
                         "compare_bits", "restart", "configure", "load_streams"}) {
    QAction* action = parts_.actions[QLatin1String(id)];
    allow(parts_.store, action, action->isEnabled());
  }
}

}  // namespace stepscope

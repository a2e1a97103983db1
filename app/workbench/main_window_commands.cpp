// SPDX-License-Identifier: GPL-3.0-or-later
// What the actions and the views' wishes do.
#include <QApplication>
#include <QInputDialog>
#include <QMenu>
#include <QTimer>
#include <algorithm>
#include <tuple>
#include <utility>

#include "app/workbench/main_window.h"
#include "app/workbench/view_list.h"
#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/icons.h"
#include "views/common/names.h"

namespace stepscope {
namespace {

// Asks for one number in a small window that does not stop the program.
void askNumber(QWidget* parent, const QString& title, const QString& label, int value, int most,
               const std::function<void(int)>& then) {
  auto* dialog = new QInputDialog(parent);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setInputMode(QInputDialog::IntInput);
  dialog->setWindowTitle(title);
  dialog->setLabelText(label);
  dialog->setIntRange(0, most);
  dialog->setIntValue(value);
  QObject::connect(dialog, &QInputDialog::intValueSelected, parent, then);
  dialog->open();
}

class OptionChange : public QUndoCommand {
 public:
  OptionChange(Session& session, OptionSettings from, OptionSettings to)
      : session_(session), from_(std::move(from)), to_(std::move(to)) {
    QStringList text;
    for (const auto& [name, value] : to_) text << QObject::tr("%1 = %2").arg(name, value);
    setText(text.join(QStringLiteral(", ")));
  }
  void redo() override { session_.setOptions(to_); }
  void undo() override { session_.setOptions(from_); }

 private:
  Session& session_;
  OptionSettings from_, to_;
};

// From one arrangement of the views to another; the window shows the second one already.
class ArrangementChange : public QUndoCommand {
 public:
  ArrangementChange(MainWindow& window, Layout from, Layout to)
      : QUndoCommand(QObject::tr("views")), window_(window), from_(std::move(from)), to_(std::move(to)) {}
  void redo() override {
    if (std::exchange(shown_, false)) return;
    window_.arrange(to_);
  }
  void undo() override { window_.arrange(from_); }

 private:
  MainWindow& window_;
  Layout from_, to_;
  bool shown_ = true;
};

// An element that was edited. It is taken back where it was made: what runs since may have read or computed it again.
class ElementChange : public QUndoCommand {
 public:
  ElementChange(Session& session, const SnapshotStore& store, ElementEdit edit, std::function<void(const QString&)> tell)
      : session_(session), store_(store), edit_(std::move(edit)), place_(placeOf(store)), tell_(std::move(tell)) {
    setText(QObject::tr("element"));
  }
  void redo() override {
    if (std::exchange(made_, false)) return;
    set(edit_.after, edit_.before);
  }
  void undo() override { set(edit_.before, edit_.after); }

 private:
  static std::tuple<bool, std::int64_t, int> placeOf(const SnapshotStore& store) {
    const auto& p = store.position();
    return {p.in_step(), p.step(), p.instruction()};
  }
  void set(double number, double from) {
    if (placeOf(store_) == place_) return session_.editElement(edit_.value, edit_.index, number, from, false);
    tell_(QObject::tr("The step went on since the element was edited; go back to where it was to take it back"));
    setObsolete(true);
  }

  Session& session_;
  const SnapshotStore& store_;
  ElementEdit edit_;
  std::tuple<bool, std::int64_t, int> place_;
  std::function<void(const QString&)> tell_;
  bool made_ = true;
};

}  // namespace

void MainWindow::changeLayout(const QString& name) {
  const Layout before = board_->present(layoutName_);
  applyLayout(name);
  const Layout after = board_->present(layoutName_);
  if (before != after) undo_.push(new ArrangementChange(*this, before, after));
}

View* MainWindow::viewWithGroups() const {
  const QString ids[] = {QStringLiteral("graph"), QStringLiteral("model")};
  View* active = board_->activeView();
  for (const QString& id : ids)
    if (active && active == board_->find(id)) return active;
  for (const QString& id : ids)
    if (View* shown = board_->find(id); shown && shown->isVisible()) return shown;
  return nullptr;
}

void MainWindow::focusOrFit() {
  View* view = board_->activeView();
  if (!view) return;
  // Twice in a row shows everything.
  constexpr int kTwice = 1000;  // milliseconds
  const bool again = focused_.isValid() && focused_.elapsed() < kTwice;
  if (again) {
    focused_.invalidate();
    view->fitAll();
  } else {
    focused_.start();
    view->focusSelection();
  }
}

// What is asked for in one turn of the event loop is one change, and is taken back as one.
void MainWindow::setOptionUndoable(const QString& name, const QString& value) {
  if (wanted_.empty()) QTimer::singleShot(0, this, &MainWindow::pushOptions);
  wanted_.emplace_back(name, value);
}

void MainWindow::pushOptions() {
  OptionSettings from, to;
  for (const auto& [name, value] : std::exchange(wanted_, {}))
    for (const auto& option : store_.options()) {
      if (QString::fromStdString(option.name()) != name || QString::fromStdString(option.value()) == value) continue;
      if (name == u"memory.limit") askedLimit_ = value;
      from.emplace_back(name, QString::fromStdString(option.value()));
      to.emplace_back(name, value);
    }
  if (!to.empty()) undo_.push(new OptionChange(session_, std::move(from), std::move(to)));
}

void MainWindow::connectActions() {
  const auto on = [this](const char* id, auto&& slot) {
    connect((*actions_)[QLatin1String(id)], &QAction::triggered, this, std::forward<decltype(slot)>(slot));
  };
  on("open", [this] { emit wishes_.openDialog(); });
  on("start_page", [this] { showStartPage(start_ && pages_->currentWidget() != start_); });
  on("quit", [this] { close(); });
  on("run", [this] {
    if (session_.running() || session_.busy())
      session_.pause();  // not every keyboard has a key for it
    else
      session_.run(false);
  });
  on("run_back", [this] { session_.run(true); });
  on("stop", [this] { session_.pause(); });
  on("step_back", [this] { session_.step(-1); });
  on("step", [this] { session_.step(1); });
  on("step_phase", [this] { session_.stepPhase(false); });
  on("step_phase_back", [this] { session_.stepPhase(true); });
  on("step_whole", [this] { session_.finishStep(); });
  on("run_here", [this] {
    if (selection_.selection().instruction >= 0) {
      session_.runTo(selection_.selection().instruction);
    } else {
      status_->note(tr("Select an instruction to run to"));
    }
  });
  on("abandon", [this] { session_.abandon(); });
  on("train", [this] {
    askNumber(this, tr("Train at full speed"), tr("Number of training steps:"), 100, 1'000'000,
              [this](int n) { session_.train(n); });
  });
  on("rewind", [this] {
    const int step = static_cast<int>(std::min<std::int64_t>(store_.position().step(), 1'000'000'000));
    askNumber(this, tr("Rewind"), tr("Go back to the state before step:"), std::max(0, step - 1), step,
              [this](int n) { session_.rewind(n); });
  });
  on("new_run", [this] {
    scripted_ = true;  // its set-up is known
    session_.newRun();
  });
  on("name_run", [this] {
    auto* dialog = new QInputDialog(this);
    dialog->setObjectName(QStringLiteral("name_run_dialog"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(tr("Name this run"));
    dialog->setLabelText(tr("Name in the list of runs:"));
    connect(dialog, &QInputDialog::textValueSelected, this, [this](const QString& name) {
      if (!name.trimmed().isEmpty()) recording_.nameRun(name.trimmed());
    });
    dialog->open();
  });
  on("breakpoint", [this] {
    if (selection_.selection().instruction >= 0) session_.toggleBreakpoint(selection_.selection().instruction);
  });
  on("breakpoint_add", [this] { board_->show(QStringLiteral("breakpoints")); });
  on("restart", [this] {
    notice_->clear();
    session_.restart();
  });
  on("back", [this] { selection_.goBack(); });
  on("forward", [this] { selection_.goForward(); });
  on("goto_number", [this] {
    if (!store_.plan()) return;
    askNumber(this, tr("Go to instruction"), tr("Number of the instruction:"),
              std::max(0, selection_.selection().instruction), store_.plan()->size() - 1,
              [this](int n) { selection_.select(Selection::ofInstruction(n)); });
  });
  on("next_alert", [this] { selectNextAlert(); });
  on("next_instruction", [this] { moveSelection(1); });
  on("previous_instruction", [this] { moveSelection(-1); });
  on("select_current", [this] {
    if (selection_.currentInstruction() >= 0) selection_.select(Selection::ofInstruction(selection_.currentInstruction()));
  });
  on("select_forward", [this] {
    if (!store_.graph()) return;
    const int forward = store_.graph()->forwardOf(selection_.selection().node);
    if (forward >= 0) {
      selection_.select(Selection::ofNode(forward));
    } else {
      status_->note(tr("This node was not made from a forward node"));
    }
  });
  on("select_gradient", [this] {
    if (!store_.graph()) return;
    const auto& gradients = store_.graph()->mirrored(selection_.selection().node);
    if (gradients.empty()) {
      status_->note(tr("No gradient flows through this node"));
    } else {
      selection_.select(Selection::ofNode(gradients.front()));
    }
  });
  const auto view = [this](auto what) {
    return [this, what] {
      if (View* v = board_->activeView()) (v->*what)();
    };
  };
  on("find", view(&View::find));
  on("focus", [this] { focusOrFit(); });
  on("fit", view(&View::fitAll));
  const auto groups = [this](auto what) {
    return [this, what] {
      if (View* v = viewWithGroups())
        (v->*what)();
      else
        status_->note(tr("Groups are those of Graph and Model; neither is shown"));
    };
  };
  on("enter_group", groups(&View::enterGroup));
  on("leave_group", groups(&View::leaveGroup));
  on("theme", [this] { switchTheme(); });
  on("layout_reset", [this] { changeLayout(layoutNames().contains(layoutName_) ? layoutName_ : layoutNames().first()); });
  on("layout_delete", [this] {
    std::erase_if(saved_, [this](const Layout& l) { return l.name == layoutName_; });
    status_->note(tr("Deleted the layout %1").arg(layoutName_));
    changeLayout(layoutNames().contains(layoutName_) ? layoutName_ : QStringLiteral("Step"));
    remember();
  });
  on("layout_save", [this] {
    auto* dialog = new QInputDialog(this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(tr("Save layout"));
    dialog->setLabelText(tr("Name of the layout:"));
    dialog->setTextValue(layoutName_);
    connect(dialog, &QInputDialog::textValueSelected, this, [this](const QString& name) {
      const QString trimmed = name.trimmed().left(40);
      if (trimmed.isEmpty()) return;
      std::erase_if(saved_, [&trimmed](const Layout& l) { return l.name == trimmed; });
      saved_.push_back(board_->present(trimmed));
      applyLayout(trimmed);
      remember();
    });
    dialog->open();
  });
  connect(board_, &PanelBoard::rearranged, this, [this](const Layout& before) {
    Layout from = before;
    from.name = layoutName_;
    undo_.push(new ArrangementChange(*this, from, board_->present(layoutName_)));
  });
  on("undo", [this] { undo_.undo(); });
  on("redo", [this] { undo_.redo(); });
  connect(&undo_, &QUndoStack::canUndoChanged, (*actions_)[QStringLiteral("undo")], &QAction::setEnabled);
  connect(&undo_, &QUndoStack::canRedoChanged, (*actions_)[QStringLiteral("redo")], &QAction::setEnabled);
  on("zoom_in", [this] { scaleText(1.1); });
  on("zoom_out", [this] { scaleText(1 / 1.1); });
  on("zoom_reset", [this] { scaleText(0); });
  on("options", [this] { board_->show(QStringLiteral("options")); });
  on("compare_runs", [this] { board_->show(QStringLiteral("compare")); });
  on("compare_other", [this] {
    board_->show(QStringLiteral("compare"));
    emit wishes_.openOtherProject();
  });
  on("compare_bits", [this] {
    board_->show(QStringLiteral("determinism"));
    session_.compareBits();
  });
  on("determinism", [this] {
    board_->show(QStringLiteral("determinism"));
    session_.determinism();
  });
  on("alerts_clear", [this] { store_.clearAlerts(); });
}

void MainWindow::connectWishes() {
  connect(&wishes_, &Wishes::openPath, this, &MainWindow::openPath);
  connect(&wishes_, &Wishes::inspect, &session_, &Session::inspect);
  connect(&wishes_, &Wishes::build, &session_, &Session::build);
  connect(&wishes_, &Wishes::runTo, &session_, &Session::runTo);
  connect(&wishes_, &Wishes::toggleBreakpoint, &session_, &Session::toggleBreakpoint);
  connect(&wishes_, &Wishes::addBreakpoint, this, [this](const snapshot::Breakpoint& b) {
    auto all = store_.breakpoints();
    all.push_back(b);
    session_.setBreakpoints(all);
  });
  connect(&wishes_, &Wishes::removeBreakpoint, this, [this](int id) {
    auto all = store_.breakpoints();
    std::erase_if(all, [id](const auto& b) { return b.id() == id; });
    session_.setBreakpoints(all);
  });
  connect(&wishes_, &Wishes::enableBreakpoint, this, [this](int id, bool enabled) {
    auto all = store_.breakpoints();
    for (auto& b : all) {
      if (b.id() == id) b.set_enabled(enabled);
    }
    session_.setBreakpoints(all);
  });
  connect(&wishes_, &Wishes::rewind, &session_, &Session::rewind);
  connect(&wishes_, &Wishes::goToPlace, &session_, &Session::goTo);
  connect(&wishes_, &Wishes::stageGraph, this, [this](const QString& stage) {
    if (store_.readOnly()) {
      recording_.readStage(stage);
    } else {
      session_.stageGraph(stage);
    }
  });
  connect(&wishes_, &Wishes::fetchTensor, &session_, &Session::fetchTensor);
  connect(&wishes_, &Wishes::watch, &session_, &Session::watch);
  connect(&wishes_, &Wishes::pin, &session_, &Session::pin);
  connect(&wishes_, &Wishes::editTensor, &session_, &Session::editTensor);
  connect(&wishes_, &Wishes::editElement, &session_,
          [this](int value, const std::vector<qint64>& index, double number, double before) {
            session_.editElement(value, index, number, before);
          });
  connect(&session_, &Session::elementEdited, this, [this](const ElementEdit& edit) {
    undo_.push(new ElementChange(session_, store_, edit, [this](const QString& text) { status_->note(text); }));
  });
  connect(&wishes_, &Wishes::determinism, &session_, &Session::determinism);
  connect(&wishes_, &Wishes::compareBits, &session_, &Session::compareBits);
  connect(&wishes_, &Wishes::setOption, this, &MainWindow::setOptionUndoable);
  connect(&wishes_, &Wishes::recompute, &session_, &Session::recompute);
  connect(&wishes_, &Wishes::status, status_, &StatusLine::note);
  connect(&wishes_, &Wishes::command, this, [this](const QString& id) {
    if (QAction* action = actions_->find(id)) action->trigger();
  });
  connect(status_, &StatusLine::workerClicked, &session_, &Session::restart);
}

// A report tells of what was recorded.
void MainWindow::updateReports() {
  const bool recorded = !store_.project().projectPath().isEmpty() && (store_.readOnly() || session_.built());
  for (const char* id : {"report_html", "report_pdf", "report_json", "report_csv", "report_trace"}) {
    QAction* action = (*actions_)[QLatin1String(id)];
    action->setEnabled(recorded);
    action->setToolTip(recorded ? action->statusTip()
                                : action->statusTip() + '\n' +
                                      tr("Nothing was recorded yet: build a model, or open a recorded project"));
  }
}

void MainWindow::updateActions() {
  const bool model = session_.built() && session_.client().alive();
  const bool free = model && !session_.busy() && !session_.running();
  const auto& p = store_.position();
  const auto enable = [this](const char* id, bool enabled) { (*actions_)[QLatin1String(id)]->setEnabled(enabled); };
  for (const char* id : {"run", "step", "step_phase", "step_whole", "train", "compare_bits", "save_state"}) enable(id, free);
  for (const char* id : {"step_back", "step_phase_back", "run_back"}) enable(id, free && p.in_step() && p.instruction() > 0);
  enable("run_here", free && selection_.selection().instruction >= 0);
  enable("abandon", free && p.in_step());
  enable("rewind", free && p.step() > 0);
  enable("new_run", free);
  enable("name_run", session_.built() && recording_.recording());
  enable("run", free || (model && (session_.busy() || session_.running())));
  enable("stop", session_.busy() || session_.running());
  enable("restart", !session_.modelPath().isEmpty());
  enable("configure", store_.model() != nullptr && !session_.busy() && !store_.readOnly());
  enable("determinism", store_.plan() != nullptr);
  enable("breakpoint", selection_.selection().instruction >= 0);
  enable("back", selection_.canGoBack());
  enable("forward", selection_.canGoForward());
  for (const char* id : {"goto", "goto_number", "next_instruction", "previous_instruction"})
    enable(id, store_.plan() != nullptr);
  enable("select_current", selection_.currentInstruction() >= 0);
  for (const char* id : {"select_forward", "select_gradient"}) enable(id, selection_.selection().node >= 0);
  enable("undo", undo_.canUndo());
  enable("redo", undo_.canRedo());
  enable("layout_delete",
         std::any_of(saved_.begin(), saved_.end(), [this](const Layout& l) { return l.name == layoutName_; }));
  updateReports();
  const bool panels = pages_->currentWidget() == board_;
  for (const char* id : {"picture_save", "picture_copy", "find", "focus", "fit"}) enable(id, panels);
}

}  // namespace stepscope

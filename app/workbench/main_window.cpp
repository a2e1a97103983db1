// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/main_window.h"

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QApplication>
#include <QCloseEvent>
#include <QComboBox>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QJsonDocument>
#include <QKeyEvent>
#include <QMenu>
#include <QMimeData>
#include <QSettings>
#include <QVBoxLayout>

#include "app/workbench/view_list.h"
#include "views/common/file_name.h"
#include "views/common/format.h"
#include "views/common/running.h"
#include "views/common/tokens.h"
#include "views/common/turns.h"

namespace stepscope {

MainWindow::MainWindow(bool remember)
    : remember_(remember),
      session_(store_, selection_),
      recording_(store_),
      sources_(store_.findings()),
      actions_(new Actions(this)),
      toolbar_(new Toolbar(*actions_)),
      notice_(new NoticeBar),
      pages_(new QStackedWidget),
      board_(new PanelBoard([this](const QString& id) { return makeView(id); })),
      status_(new StatusLine(store_, selection_)) {
  setObjectName(QStringLiteral("main_window"));
  setWindowTitle(QStringLiteral("Stepscope"));
  setAcceptDrops(true);
  const QSize wish(1600, 1000);
  // The frame that the system draws around it needs room too.
  const QSize frame(Metrics::current().unit, 3 * Metrics::current().unit);
  resize(remember ? wish.boundedTo(screen()->availableSize() - frame) : wish);
  selection_.setCompleter([this](Selection s) { return complete(std::move(s)); });

  auto* central = new QWidget;
  auto* layout = new QVBoxLayout(central);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(toolbar_);
  layout->addWidget(notice_);
  middle_ = new QHBoxLayout;
  middle_->setSpacing(0);
  middle_->addWidget(pages_, 1);
  layout->addLayout(middle_, 1);
  layout->addWidget(status_);
  setCentralWidget(central);
  pages_->addWidget(board_);
  start_ = makeView(QStringLiteral("start"));
  if (start_) pages_->addWidget(start_);

  connectSession();
  connectWishes();
  restore();
  makeMenus();
  connectActions();
  connectFiles();
  if (layoutName_.isEmpty()) applyLayout(QStringLiteral("Step"));
  showStartPage(true);
  updateActions();
  updateBreakOn();
  qApp->installEventFilter(this);
  connect(&progressTimer_, &QTimer::timeout, this, &MainWindow::updateProgress);
  progressTimer_.start(200);
}

MainWindow::~MainWindow() {
  // Views hold references to the store and the selection, which are members and would go first.
  qApp->removeEventFilter(this);
  delete takeCentralWidget();
}

View* MainWindow::makeView(const QString& id) {
  for (const ViewEntry& entry : viewList()) {
    if (id != QLatin1String(entry.id)) continue;
    View* view = entry.make({store_, selection_, wishes_});
    // Whenever it is made: not only views of the layout that the window opens with remember what they showed.
    if (remember_) {
      const SettingsReader settings = remembered();
      const QString key = QStringLiteral("view/") + id, state = settings.text(key);
      view->restoreState(state);
      if (!state.isEmpty() && view->saveState() != state)
        settings.refuse(key, format::visible(state.left(40)), tr("the state of the view"));
    }
    return view;
  }
  return nullptr;
}

Selection MainWindow::complete(Selection s) const {
  const GraphPtr& graph = store_.graph();
  const PlanPtr& plan = store_.plan();
  if (plan) {
    if (s.instruction >= 0 && s.node < 0) {
      if (const auto* in = plan->instruction(s.instruction)) s.node = in->node();
    }
    if (s.buffer >= 0 && s.value < 0) {
      if (const auto* buffer = plan->buffer(s.buffer)) {
        s.value = buffer->value();
        if (s.instruction < 0 && s.node < 0) s.instruction = buffer->first();
      }
    }
    if (s.value >= 0 && s.node < 0 && s.instruction < 0) s.instruction = plan->producerOfValue(s.value);
    if (s.value >= 0 && s.node < 0 && s.instruction < 0 && graph && graph->producer(s.value) < 0) {
      // Nothing makes a parameter or an input; where it is read first, every view can show.
      for (const int reader : graph->consumers(s.value)) {
        const int instruction = plan->instructionOfNode(reader);
        if (instruction >= 0 && (s.instruction < 0 || instruction < s.instruction)) s.instruction = instruction;
      }
    }
    if (s.instruction >= 0 && s.node < 0) {
      if (const auto* in = plan->instruction(s.instruction)) s.node = in->node();
    }
    if (s.node >= 0 && s.instruction < 0) s.instruction = plan->instructionOfNode(s.node);
  }
  if (graph) {
    if (s.value >= 0 && s.node < 0) s.node = graph->producer(s.value);
    if (const auto* node = graph->node(s.node)) {
      if (s.value < 0) {
        for (const int out : node->outputs()) {
          if (out >= 0) {
            s.value = out;
            break;
          }
        }
      }
      if (s.file.isEmpty() && !node->provenance().source_file().empty()) {
        s.file = QString::fromStdString(node->provenance().source_file());
        s.line = node->provenance().source_line();
      }
    }
  }
  if (plan && s.buffer < 0 && s.value >= 0) s.buffer = plan->bufferOfValue(s.value);
  return s;
}

void MainWindow::showStartPage(bool show) {
  if (start_) pages_->setCurrentWidget(show ? static_cast<QWidget*>(start_) : board_);
  if (start_ && show) start_->setFocus();
  updateActions();
}

QStringList MainWindow::layoutNames() const {
  QStringList names;
  for (const Layout& l : shippedLayouts()) names << l.name;
  for (const Layout& l : saved_) {
    if (!names.contains(l.name)) names << l.name;
  }
  return names;
}

void MainWindow::arrange(const Layout& layout) {
  layoutName_ = layout.name;
  board_->apply(layout);
  toolbar_->setLayoutName(layout.name);
  updateActions();
  // The view that had the focus may be gone; without this it goes to the first button.
  if (View* view = board_->activeView(); view && session_.built()) board_->focus(*view);
}

void MainWindow::applyLayout(const QString& name) {
  const auto apply = [&](const std::vector<Layout>& layouts) {
    for (const Layout& l : layouts) {
      if (l.name.compare(name, Qt::CaseInsensitive) != 0) continue;
      arrange(l);
      return true;
    }
    return false;
  };
  if (!apply(saved_) && !apply(shippedLayouts())) {
    notice_->showProblem(tr("layout '%1': unknown; expected one of %2").arg(name, layoutNames().join(QStringLiteral(", "))),
                         {}, {});
  }
}

bool MainWindow::idle() const {
  return recording_.idle() && !session_.busy() && const_cast<Session&>(session_).client().openRequests() == 0 &&
         turns::waiting() == 0;
}

void MainWindow::connectSession() {
  connect(&session_, &Session::busyChanged, this, [this] {
    Running::of(store_).set(session_.running());
    status_->setGoal(session_.goal());
    if (!session_.busy() && !(store_.position().in_step() && store_.position().breakpoint() != 0)) notice_->clearStop();
    toolbar_->setRunning(session_.busy() || session_.running());
    updateActions();
  });
  connect(&session_, &Session::builtChanged, this, [this] {
    if (!session_.built()) undo_.clear();  // options of another model
    if (session_.built()) {
      showStartPage(false);
      if (View* view = board_->activeView()) board_->focus(*view);  // and not the first button
    }
    updateActions();
    const QString name = format::fileName(session_.modelPath());
    setWindowTitle(name.isEmpty() ? QStringLiteral("Stepscope") : name + QStringLiteral(" – Stepscope"));
  });
  connect(&session_, &Session::problem, this, [this](const QString& text, const QString& code) {
    if (code == u"worker_died") {
      notice_->showProblem(
          store_.plan() ? tr("%1. What was shown last stays. Restarting returns to the same step.").arg(text) : text,
          tr("Restart worker"), [this] { session_.restart(); });
    } else if (code == u"out_of_memory" && store_.plan()) {
      notice_->showProblem(format::bytesWithin(text), tr("Fit by recompute"), [this] { fitByRecompute(); });
    } else {
      notice_->showProblem(text, {}, {});
    }
  });
  connect(&session_, &Session::buildDied, this, &MainWindow::tellOfBuildDeath);
  connect(&session_, &Session::alertRaised, this, [this](const snapshot::Alert& alert) {
    if (alert.code() == "does_not_fit")
      notice_->showProblem(format::bytesWithin(format::visible(alert.message())), tr("Fit by recompute"),
                           [this] { fitByRecompute(); });
    using B = snapshot::Breakpoint;
    if (alert.code() != "nan" && alert.code() != "inf") return;
    const auto kind = alert.code() == "nan" ? B::kNan : B::kNewInf;
    const auto& all = store_.breakpoints();
    if (std::any_of(all.begin(), all.end(), [kind](const B& b) { return b.enabled() && b.condition_case() == kind; }))
      return;  // the run stops at it, and brokeAt() tells
    const QString text = tr("Step %1: %2").arg(format::count(alert.step()), format::visible(alert.message()));
    notice_->showProblem(
        text, alert.instruction() < 0 ? QString() : tr("Show where"),
        [this, step = alert.step(), instruction = alert.instruction()] { session_.goTo(step, instruction); });
  });
  connect(&session_, &Session::progress, status_, &StatusLine::setProgress);
  connect(&session_, &Session::note, status_, &StatusLine::note);
  connect(&session_, &Session::brokeAt, this, [this](const QString& reason, int instruction) {
    const auto* made = store_.plan() ? store_.plan()->instruction(instruction) : nullptr;
    if (!made) {
      status_->note(tr("Stopped by %1").arg(reason));
      return;
    }
    const QString maker = tr("%1 %2").arg(format::count(instruction), format::visible(made->op()));
    QString text = tr("Stopped by %1, made by %2").arg(reason, maker);
    // The alert of it knows more: the row of the batch, say.
    const auto& alerts = store_.alerts();
    const auto told = std::find_if(alerts.rbegin(), alerts.rend(), [&](const snapshot::Alert& a) {
      return a.step() == store_.position().step() && a.instruction() == instruction &&
             (a.code() == "nan" || a.code() == "inf");
    });
    if (told != alerts.rend())
      text = tr("Stopped in step %1: %2").arg(format::count(told->step()), format::visible(told->message()));
    notice_->showStop(text, tr("Show %1").arg(maker),
                      [this, instruction] { selection_.select(Selection::ofInstruction(instruction)); });
  });
  connect(&store_, &SnapshotStore::optionsChanged, this, &MainWindow::updateOptions);
  connect(&store_, &SnapshotStore::alertsChanged, this, &MainWindow::updateAlerts);
  connect(&store_, &SnapshotStore::breakpointsChanged, this, &MainWindow::updateBreakOn);
  connect(&store_, &SnapshotStore::planChanged, this, &MainWindow::updateActions);
  connect(&store_.project(), &ProjectFacts::projectChanged, this, &MainWindow::updateActions);
  connect(&store_, &SnapshotStore::positionChanged, this, &MainWindow::updateActions);
  connect(&selection_, &SelectionModel::historyChanged, this, &MainWindow::updateActions);
  connect(&selection_, &SelectionModel::selectionChanged, this, &MainWindow::updateActions);
  setBreakOn(true, true);
}

// A budget of live activations with which the plan stays below its limit, as far as values can be computed again.
void MainWindow::fitByRecompute() {
  if (!store_.plan()) return;
  qint64 limit = 0;
  for (const auto& option : store_.options())
    if (option.name() == "memory.limit") limit = format::bytesOf(QString::fromStdString(option.value())).value_or(0);
  // One that was refused because the plan does not fit is what the plan is made to fit.
  const qint64 asked = format::bytesOf(askedLimit_).value_or(0);
  if (asked > 0) limit = asked;
  if (limit == 0 && store_.machine()) limit = store_.machine()->memory_bytes();
  const snapshot::Plan& plan = store_.plan()->plan();
  const qint64 budget = limit - plan.persistent_bytes();
  if (budget <= 0) {
    notice_->showProblem(tr("recompute: parameters, optimizer state and batch alone need %1; expected less than %2")
                             .arg(format::bytes(plan.persistent_bytes()), format::bytes(limit)),
                         {}, {});
    return;
  }
  board_->show(QStringLiteral("recompute"));
  if (asked > 0) setOptionUndoable(QStringLiteral("memory.limit"), askedLimit_);
  // What a plan places around live values, workspaces above all, needs room too.
  setOptionUndoable(QStringLiteral("recompute.budget"), QString::number(budget - budget / 20));
}

void MainWindow::updateProgress() {
  const WorkerClient& client = session_.client();
  if (store_.workerState() == WorkerState::kUnresponsive && !session_.modelPath().isEmpty()) {
    notice_->showProgress(
        tr("%1: the worker does not answer. Restarting it returns to the same step.").arg(client.activity()), 0, 0,
        tr("Restart worker"), [this] { session_.restart(); });
  } else if (client.busy() && client.activity().contains(',')) {  // the activity counts seconds once it is longer than one
    notice_->showProgress(client.activity(), 0, 0, tr("Cancel"), [this] { session_.pause(); });
  } else {
    notice_->clearProgress();
  }
}

void MainWindow::updateOptions() {
  int on = 0, total = 0;
  for (const auto& option : store_.options()) {
    // Settings of the training, such as Nesterov momentum, are no optimisations.
    const bool isSwitch = option.choices_size() == 2 && option.choices(0) == "on" &&
                          (option.name().starts_with("pass.") || option.name().starts_with("memory."));
    total += isSwitch;
    on += isSwitch && option.value() == "on";
  }
  toolbar_->setOptions(on, total);
  const auto value = [this](const char* name) {
    for (const auto& o : store_.options())
      if (o.name() == name) return format::visible(o.value());
    return QString();
  };
  const QString device = value("device").toUpper(), precision = value("precision");
  const QString where = device.isEmpty() || precision.isEmpty() ? device + precision : tr("%1 · %2").arg(device, precision);
  status_->setDevice(where);
  toolbar_->setDevice(where);
}

void MainWindow::updateAlerts() {
  int warnings = 0, errors = 0;
  for (const auto& alert : store_.alerts()) {
    warnings += alert.severity() == snapshot::Alert::WARNING;
    errors += alert.severity() == snapshot::Alert::ERROR;
  }
  toolbar_->setAlerts(warnings, errors);
  alertPlace_ = -1;
}

void MainWindow::selectNextAlert() {
  const auto& alerts = store_.alerts();
  if (alerts.empty()) {
    status_->note(tr("No alerts"));
    return;
  }
  alertPlace_ = (alertPlace_ + 1) % static_cast<int>(alerts.size());
  const auto& alert = alerts[static_cast<std::size_t>(alertPlace_)];
  Selection s;
  s.node = alert.node();
  s.value = alert.value();
  s.instruction = alert.instruction();
  if (!s.empty() && (s.node >= 0 || s.value >= 0 || s.instruction >= 0)) selection_.select(s);
  board_->show(QStringLiteral("alerts"));
  status_->note(format::visible(alert.message()));
}

void MainWindow::moveSelection(int by) {
  if (!store_.plan() || store_.plan()->size() == 0) return;
  const int from = selection_.selection().instruction >= 0 ? selection_.selection().instruction
                                                           : std::max(0, selection_.currentInstruction());
  selection_.select(Selection::ofInstruction(std::clamp(from + by, 0, store_.plan()->size() - 1)));
}

void MainWindow::setBreakOn(bool nan, bool inf) {
  auto all = store_.breakpoints();
  const auto ofKind = [](auto kind) { return [kind](const snapshot::Breakpoint& b) { return b.condition_case() == kind; }; };
  const auto apply = [&](bool on, auto kind, auto make) {
    const auto it = std::find_if(all.begin(), all.end(), ofKind(kind));
    if (it != all.end()) {
      it->set_enabled(on);
    } else if (on) {
      snapshot::Breakpoint b;
      make(b);
      b.set_enabled(true);
      all.push_back(b);
    }
  };
  apply(nan, snapshot::Breakpoint::kNan, [](auto& b) { b.set_nan(true); });
  apply(inf, snapshot::Breakpoint::kNewInf, [](auto& b) { b.set_new_inf(true); });
  session_.setBreakpoints(all);
}

void MainWindow::updateBreakOn() {
  bool nan = false, inf = false;
  for (const auto& b : store_.breakpoints()) {
    nan = nan || (b.condition_case() == snapshot::Breakpoint::kNan && b.enabled());
    inf = inf || (b.condition_case() == snapshot::Breakpoint::kNewInf && b.enabled());
  }
  toolbar_->setBreakOn(nan && inf ? tr("NaN, Inf") : nan ? tr("NaN") : inf ? tr("Inf") : tr("nothing"));
}

void MainWindow::switchTheme() {
  const Theme next = Tokens::current().theme == Theme::kLight ? Theme::kDark : Theme::kLight;
  applyTheme(*qApp, next);
  updateAlerts();
  if (remember_)
    QSettings().setValue(QStringLiteral("theme"), next == Theme::kDark ? QStringLiteral("dark") : QStringLiteral("light"));
  for (QWidget* w : findChildren<QWidget*>()) w->update();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls() && event->mimeData()->urls().first().isLocalFile()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) { emit wishes_.openPath(event->mimeData()->urls().first().toLocalFile()); }

void MainWindow::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape && session_.working()) {
    session_.pause();
    return;
  }
  if (event->key() == Qt::Key_Escape && notice_->isProblem()) {
    notice_->clear();
    return;
  }
  QMainWindow::keyPressEvent(event);
}

// Space fits the view, but whoever has the keyboard on a button, a box of choices or a check box presses it.
bool MainWindow::event(QEvent* event) {
  if (event->type() == QEvent::ShortcutOverride) {
    const auto* key = static_cast<QKeyEvent*>(event);
    const QWidget* focus = QApplication::focusWidget();
    const auto* items = qobject_cast<const QAbstractItemView*>(focus);
    const bool pressed = qobject_cast<const QAbstractButton*>(focus) || qobject_cast<const QComboBox*>(focus) ||
                         (items && items->currentIndex().flags() & Qt::ItemIsUserCheckable);
    if (key->key() == Qt::Key_Space && key->modifiers() == Qt::NoModifier && pressed) {
      event->accept();
      return true;
    }
  }
  return QMainWindow::event(event);
}

// On this system a line of text takes Ctrl+E for the way to its end, which the End key is for; whoever filters a view
// exports it too.
bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::ShortcutOverride && watched->isWidgetType() &&
      static_cast<QWidget*>(watched)->window() == this) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if ((*actions_)[QStringLiteral("picture_save")]->shortcut() == QKeySequence(key->keyCombination())) {
      event->ignore();
      return true;
    }
  }
  return QMainWindow::eventFilter(watched, event);
}

void MainWindow::leave() {
  remember();
  markTimer_.stop();
  if (mark_) mark_->drop();
}

void MainWindow::closeEvent(QCloseEvent* event) {
  leave();
  QMainWindow::closeEvent(event);
}

}  // namespace stepscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QDragEnterEvent>
#include <QHBoxLayout>
#include <QMimeData>
#include <QScreen>
#include <QStackedWidget>
#include <QVBoxLayout>
#include <utility>

#include "app/workbench/screen_fit.h"
#include "app/workbench/selection_completer.h"
#include "app/workbench/view_list.h"
#include "views/common/file_name.h"
#include "views/common/format.h"
#include "views/common/tokens.h"
#include "views/common/turns.h"
#include "views/key_help/key_help.h"
#include "views/palette/palette.h"

namespace stepscope {

MainWindow::MainWindow(bool remember)
    : settings_(remember, store_),
      session_(store_, selection_),
      recording_(store_),
      lab_(store_, wishes_, session_, recording_, remember),
      actions_(new Actions(this)),
      toolbar_(new Toolbar(*actions_)),
      notice_(new NoticeBar),
      middle_(new QHBoxLayout),
      pages_(new QStackedWidget),
      board_(new PanelBoard([this](const QString& id) { return makeView(id); })),
      status_(new StatusLine(store_, selection_)),
      parts_{*this, store_, selection_, wishes_, session_, recording_, *actions_, *board_, *notice_, *status_},
      questions_(*this),
      files_(settings_, store_),
      history_(parts_, [this](const ViewLayout& layout) { layouts_.arrange(layout); }),
      toolbarFacts_(parts_, *toolbar_),
      modelMemory_(parts_, toolbarFacts_, settings_),
      layouts_(parts_, *toolbar_, settings_, history_),
      notices_(parts_, history_),
      deaths_(parts_),
      wishWiring_(parts_, questions_, history_),
      menus_(parts_, *toolbar_),
      run_(parts_),
      select_(parts_),
      views_(parts_, questions_, settings_),
      opening_(parts_, questions_, files_, *middle_, *pages_),
      remote_(parts_, opening_, questions_, settings_),
      recordingWiring_(parts_, files_, remember),
      return_(parts_, opening_,
              {[this] { return layouts_.present(); }, [this](const ViewLayout& layout) { layouts_.arrange(layout); }},
              remember),
      kept_(parts_, opening_, recordingWiring_, return_),
      guide_(parts_, *middle_, *pages_),
      keys_(parts_) {
  setObjectName(QStringLiteral("main_window"));
  setWindowTitle(QStringLiteral("Stepscope"));
  setAcceptDrops(true);
  const QSize wish(1600, 1000), frame(Metrics::current().unit, 3 * Metrics::current().unit);  // which the system draws
  resize(remember ? wish.boundedTo(screen()->availableSize() - frame) : wish);
  selection_.setCompleter([this](Selection s) { return completed(std::move(s), store_); });
  layOut();
  connectParts();
  connectActions();
  connectUpdates();
  if (remember) restoreGeometryOf(settings_.read());
  layouts_.restore();
  if (layouts_.name().isEmpty()) layouts_.apply(QStringLiteral("Step"));
  showStartPage(true);
  qApp->installEventFilter(&keys_);
  files_.list();
  session_.client().start();  // the start page tells what the machine has, which the worker knows
}

MainWindow::~MainWindow() {
  // Views hold references to the store and the selection, which are members and would go first.
  qApp->removeEventFilter(&keys_);
  delete takeCentralWidget();
}

void MainWindow::layOut() {
  auto* central = new QWidget;
  auto* layout = new QVBoxLayout(central);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(toolbar_);
  layout->addWidget(notice_);
  middle_->setSpacing(0);
  middle_->addWidget(pages_, 1);
  layout->addLayout(middle_, 1);
  layout->addWidget(status_);
  setCentralWidget(central);
  pages_->addWidget(board_);
  start_ = makeView(QStringLiteral("start"));
  if (start_) pages_->addWidget(start_);
}

View* MainWindow::makeView(const QString& id) {
  for (const ViewEntry& entry : viewList()) {
    if (id != QLatin1String(entry.id)) continue;
    View* view = entry.make({store_, selection_, wishes_});
    // Whenever it is made: not only views of the layout that the window opens with remember what they showed.
    if (settings_.remember()) {
      const SettingsReader settings = settings_.read();
      const QString key = QStringLiteral("view/") + id, state = modelMemory_.stateFor(id, settings.text(key));
      view->restoreState(state);
      if (!state.isEmpty() && view->saveState() != state)
        settings.refuse(key, format::visible(state.left(40)), QStringLiteral("the state of the view"));
    }
    return view;
  }
  return nullptr;
}

void MainWindow::showStartPage(bool show) {
  if (start_) pages_->setCurrentWidget(show ? static_cast<QWidget*>(start_) : board_);
  if (start_ && show) start_->setFocus();
  updateActions();
}

void MainWindow::arranged() {
  updateActions();
  // The view that had the focus may be gone; without this it goes to the first button.
  if (View* view = board_->activeView(); view && session_.built()) board_->focus(*view);
}

bool MainWindow::idle() const {
  return recording_.idle() && !session_.busy() && const_cast<ModelSession&>(session_).client().openRequests() == 0 &&
         turns::waiting() == 0;
}

void MainWindow::connectParts() {
  connect(&menus_, &WindowMenus::viewWanted, this, [this](const QString& id) {
    showStartPage(false);
    if (View* view = board_->show(id)) board_->focus(*view);
  });
  connect(&menus_, &WindowMenus::layoutWanted, this, [this](const QString& name) {
    showStartPage(false);
    layouts_.change(name);
  });
  connect(&menus_, &WindowMenus::layoutsAsked, this, [this](QStringList* names, QString* present) {
    *names = layouts_.names();
    *present = layouts_.name();
  });
  connect(&menus_, &WindowMenus::breakOnWanted, &toolbarFacts_, &ToolbarFacts::setBreakOn);
  connect(&run_, &RunCommands::beginningAgain, &opening_, &ModelOpening::setScripted);
  connect(&views_, &ViewCommands::themeChanged, &toolbarFacts_, &ToolbarFacts::updateAlerts);
  connect(&layouts_, &LayoutKeeper::arranged, this, &MainWindow::arranged);
  connect(&layouts_, &LayoutKeeper::savedChanged, this, &MainWindow::remember);
  connect(&opening_, &ModelOpening::lookedAt, this, [this] {
    showStartPage(false);
    // Only the graph has something to show before a build, whatever the layout is.
    if (std::exchange(lookedAt_, session_.modelPath()) == session_.modelPath()) return;
    board_->show(QStringLiteral("graph"));
    firstBuild_ = true;
  });
  connect(&opening_, &ModelOpening::fitWanted, &notices_, &SessionNotices::fitByRecompute);
  // Also for a window that does not live to be closed.
  connect(&recordingWiring_, &RecordingWiring::runBegun, this, &MainWindow::remember);
  connect(&kept_, &KeptTraining::kept, this, &MainWindow::closeAtOnce);
  connect(&session_, &ModelSession::builtChanged, this, [this] {
    if (session_.built()) {
      showStartPage(false);
      // And not the first button; but a set-up that came back before what was built did keeps the keyboard.
      View* view = std::exchange(firstBuild_, false) ? board_->front(QStringLiteral("instructions")) : nullptr;
      if (!view) view = board_->activeView();
      if (view && !opening_.setUpShown()) board_->focus(*view);
    }
    updateActions();
    const QString name = format::fileName(session_.modelPath());
    const QString& host = session_.client().host().host;
    const QString model = session_.client().host().attached() ? QStringLiteral("Attached to %1").arg(name) : name;
    const QString what = host.isEmpty() ? model : QStringLiteral("%1 on %2").arg(model, format::visible(host));
    setWindowTitle(name.isEmpty() ? QStringLiteral("Stepscope") : what + QStringLiteral(" – Stepscope"));
  });
  connect(&recording_, &Recording::opened, this, [this](const QString& path) {
    qint64 run = recording_.queries().run();
    for (const RunEntry& other : store_.project().runs())
      if (recording_.queries().run() == 0) run = std::max<qint64>(run, other.id);
    const QString name = format::visible(path.section('/', -1));
    setWindowTitle((run > 0 ? QStringLiteral("%1, run %2 (read-only) – Stepscope").arg(name).arg(run)
                            : QStringLiteral("%1 (read-only) – Stepscope").arg(name)));
    showStartPage(false);
  });
}

void MainWindow::connectActions() {
  const auto on = [this](const char* id, auto&& slot) {
    connect((*actions_)[QLatin1String(id)], &QAction::triggered, this, std::forward<decltype(slot)>(slot));
  };
  on("open", [this] { opening_.ask(); });
  on("start_page", [this] { showStartPage(start_ && pages_->currentWidget() != start_); });
  on("quit", [this] { close(); });
  on("keys", [this] {
    for (auto* open : findChildren<KeyHelp*>()) {
      if (open->isVisible()) return open->raise();
    }
    (new KeyHelp(actions_->all(), this))->show();
  });
  auto* palette = new Palette({store_, selection_, wishes_}, actions_->all(), this);
  on("palette", [palette] { palette->open(QStringLiteral(">")); });
  on("goto", [palette] { palette->open({}); });
}

void MainWindow::connectUpdates() {
  connect(&session_, &ModelSession::busyChanged, this, &MainWindow::updateActions);
  connect(&store_, &SnapshotStore::planChanged, this, &MainWindow::updateActions);
  connect(&store_.project(), &ProjectFacts::projectChanged, this, &MainWindow::updateActions);
  connect(&store_, &SnapshotStore::positionChanged, this, &MainWindow::updateActions);
  connect(&selection_, &SelectionModel::historyChanged, this, &MainWindow::updateActions);
  connect(&selection_, &SelectionModel::selectionChanged, this, &MainWindow::updateActions);
}

void MainWindow::updateReports() {
  const bool recorded = !store_.project().projectPath().isEmpty() && (store_.readOnly() || session_.built());
  for (const char* id : {"report_html", "report_pdf", "report_json", "report_csv", "report_trace", "import_pytorch"}) {
    QAction* action = (*actions_)[QLatin1String(id)];
    action->setEnabled(recorded);
    action->setToolTip(recorded ? action->statusTip()
                                : action->statusTip() + '\n' +
                                      QStringLiteral("Nothing was recorded yet: build a model, or open a recorded project"));
  }
}

void MainWindow::updateActions() {
  run_.update();
  select_.update();
  updateReports();
  (*actions_)[QStringLiteral("layout_delete")]->setEnabled(layouts_.isSaved());
  const bool panels = pages_->currentWidget() == board_;
  for (const char* id : {"picture_save", "picture_copy", "find", "focus", "fit", "tear_out", "options"})
    (*actions_)[QLatin1String(id)]->setEnabled(panels);
}

void MainWindow::remember() {
  if (!settings_.remember()) return;
  settings_.set(QStringLiteral("geometry"), saveGeometry());
  layouts_.remember(), modelMemory_.remember();
  for (const ViewEntry& entry : viewList()) {
    const QString id = QString::fromLatin1(entry.id);
    if (const View* view = board_->find(id))
      settings_.set(QStringLiteral("view/") + id, ModelMemory::lasting(id, view->saveState()));
  }
}

void MainWindow::restoreGeometryOf(const SettingsReader& settings) {
  const QByteArray geometry = settings.bytes(QStringLiteral("geometry"));
  if (!geometry.isEmpty() && !restoreGeometry(geometry))
    settings.refuse("geometry", QStringLiteral("%1 bytes").arg(geometry.size()), QStringLiteral("the place of a window"));
  if (!isMaximized() && !isFullScreen()) setGeometry(fitToScreens(this->geometry()));
}

void MainWindow::leave() {
  remember();
  return_.drop();
}

void MainWindow::closeAtOnce() {
  atOnce_ = true;
  close();
}

bool MainWindow::closeKeeping() {
  if (!kept_.closing()) close();
  return isVisible();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls() && event->mimeData()->urls().first().isLocalFile()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) { emit wishes_.openPath(event->mimeData()->urls().first().toLocalFile()); }

void MainWindow::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape && run_.stop()) return;
  if (event->key() == Qt::Key_Escape && notice_->isProblem()) {
    notice_->clear();
    return;
  }
  if (event->key() == Qt::Key_Escape && opening_.leaveSetUp()) return;
  QMainWindow::keyPressEvent(event);
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (!atOnce_ && kept_.keep()) return event->ignore();
  leave();
  QMainWindow::closeEvent(event);
  emit closed();
}

}  // namespace stepscope

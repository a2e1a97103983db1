// SPDX-License-Identifier: GPL-3.0-or-later
// The window: where toolbar, views or start page, set-up and status line stand, and which actions are offered. What the
// actions do and what is told belongs to the parts below, each with a contract of its own.
#pragma once

#include <QMainWindow>

#include "app/workbench/actions.h"
#include "app/workbench/build_death_notice.h"
#include "app/workbench/change_history.h"
#include "app/workbench/guide_wiring.h"
#include "app/workbench/kept_training.h"
#include "app/workbench/lab_wiring.h"
#include "app/workbench/layout_keeper.h"
#include "app/workbench/model_memory.h"
#include "app/workbench/model_opening.h"
#include "app/workbench/notice_bar.h"
#include "app/workbench/panel_board.h"
#include "app/workbench/questions.h"
#include "app/workbench/recent_files.h"
#include "app/workbench/recording.h"
#include "app/workbench/recording_wiring.h"
#include "app/workbench/remote_opening.h"
#include "app/workbench/return_path.h"
#include "app/workbench/run_commands.h"
#include "app/workbench/select_commands.h"
#include "app/workbench/session/model_session.h"
#include "app/workbench/session_notices.h"
#include "app/workbench/status_line.h"
#include "app/workbench/toolbar.h"
#include "app/workbench/toolbar_facts.h"
#include "app/workbench/view_commands.h"
#include "app/workbench/window_keys.h"
#include "app/workbench/window_menus.h"
#include "app/workbench/window_settings.h"
#include "app/workbench/wish_wiring.h"

class QHBoxLayout;
class QStackedWidget;

namespace stepscope {

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  // `remember` reads and writes the user's settings; tests and screenshots leave them alone.
  explicit MainWindow(bool remember = true);
  ~MainWindow() override;

  // A model is inspected and the set-up shown; a project is opened read-only.
  void openPath(const QString& path) { opening_.open(path); }
  // A model is built at once with these settings on top of what inspection proposes.
  void openAndBuild(const QString& path, const snapshot::Configure& configuration) {
    opening_.openAndBuild(path, configuration);
  }
  // The worker of another machine from now on.
  void connectTo(const RemoteHost& host) { remote_.connectTo(host); }
  // Says above the start page what a window that did not end as it should had open, with the way back.
  void offerReturn() { return_.offer(); }
  // Where runs are recorded; empty: a file of the user's data folder, named after the model.
  void setProjectPath(const QString& path) { recordingWiring_.setProjectPath(path); }

  void applyLayout(const QString& name) { layouts_.apply(name); }
  // The same as a change that can be taken back.
  void changeLayout(const QString& name) { layouts_.change(name); }
  QStringList layoutNames() const { return layouts_.names(); }
  // What closing keeps and forgets. The window may go on after it: the end of a desktop session can be called off.
  void leave();
  // Likewise, and what is trained is kept, in at most `ms`.
  void leaveKeeping(int ms) {
    leave();
    kept_.keepAndStay(ms);
  }
  void closeAtOnce();  // without keeping what is trained
  // Closes as by the close button. True: what is trained is kept first, and closed() follows.
  bool closeKeeping();

  ModelSession& session() { return session_; }
  SnapshotStore& store() { return store_; }
  SelectionModel& selection() { return selection_; }
  Wishes& wishes() { return wishes_; }
  Actions& actions() { return *actions_; }
  PanelBoard& board() { return *board_; }
  NoticeBar& notice() { return *notice_; }
  Recording& recording() { return recording_; }
  // Nothing runs, nothing is asked and the views are painted.
  bool idle() const;

 signals:
  void closed();

 protected:
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void layOut();
  void connectParts();
  void connectActions();
  void connectUpdates();
  void updateActions();
  void updateReports();
  View* makeView(const QString& id);
  void showStartPage(bool show);
  void arranged();
  void remember();
  void restoreGeometryOf(const SettingsReader& settings);

  bool atOnce_ = false;

  SnapshotStore store_;
  SelectionModel selection_;
  Wishes wishes_;
  WindowSettings settings_;
  ModelSession session_;
  Recording recording_;
  LabWiring lab_;
  Actions* actions_;
  Toolbar* toolbar_;
  NoticeBar* notice_;
  QHBoxLayout* middle_;  // the pages, and the set-up beside them
  QStackedWidget* pages_;
  PanelBoard* board_;
  StatusLine* status_;
  View* start_ = nullptr;
  QString lookedAt_;         // the model whose graph was shown before its build
  bool firstBuild_ = false;  // of it, is still to come
  WindowParts parts_;
  FileQuestions questions_;
  RecentFiles files_;
  ChangeHistory history_;
  ToolbarFacts toolbarFacts_;
  ModelMemory modelMemory_;
  LayoutKeeper layouts_;
  SessionNotices notices_;
  BuildDeathNotice deaths_;
  WishWiring wishWiring_;
  WindowMenus menus_;
  RunCommands run_;
  SelectCommands select_;
  ViewCommands views_;
  ModelOpening opening_;
  RemoteOpening remote_;
  RecordingWiring recordingWiring_;
  ReturnPath return_;
  KeptTraining kept_;
  GuideWiring guide_;
  WindowKeys keys_;
};

}  // namespace stepscope

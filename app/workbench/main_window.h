// SPDX-License-Identifier: GPL-3.0-or-later
// The window: toolbar, panels or start page, status line; and the wiring of actions, session, recorder and views.
#pragma once

#include <QElapsedTimer>
#include <QMainWindow>
#include <QPointer>
#include <QStackedWidget>
#include <QUndoStack>

#include "app/workbench/actions.h"
#include "app/workbench/build_keeper.h"
#include "app/workbench/lab_wiring.h"
#include "app/workbench/model_peek.h"
#include "app/workbench/notice_bar.h"
#include "app/workbench/panel_board.h"
#include "app/workbench/recording.h"
#include "app/workbench/scratch_folder.h"
#include "app/workbench/session.h"
#include "app/workbench/session_mark.h"
#include "app/workbench/settings_reader.h"
#include "app/workbench/source_reader.h"
#include "app/workbench/status_line.h"
#include "app/workbench/toolbar.h"

class QFileDialog;
class QHBoxLayout;
class QMenu;

namespace stepscope {

class Palette;

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  // `remember` reads and writes the user's settings; tests and screenshots leave them alone.
  explicit MainWindow(bool remember = true);
  ~MainWindow() override;

  // A model is inspected and the set-up shown; a project is opened read-only.
  void openPath(const QString& path);
  // A model is built at once with these settings on top of what inspection proposes.
  void openAndBuild(const QString& path, const snapshot::Configure& configuration);

  // Says above the start page what a window that did not end as it should had open, with the way back: model, step,
  // instruction, layout, selection.
  void offerReturn();

  // Where runs are recorded; empty: a file of the user's data folder, named after the model.
  void setProjectPath(const QString& path) { projectPath_ = path; }

  void applyLayout(const QString& name);
  // The same as a change that can be taken back.
  void changeLayout(const QString& name);
  // An arrangement of the views as it is, whatever is saved under its name.
  void arrange(const Layout& layout);
  QStringList layoutNames() const;
  // What closing keeps and forgets. The window may go on after it: the end of a desktop session can be called off.
  void leave();

  Session& session() { return session_; }
  SnapshotStore& store() { return store_; }
  SelectionModel& selection() { return selection_; }
  Wishes& wishes() { return wishes_; }
  Actions& actions() { return *actions_; }
  PanelBoard& board() { return *board_; }
  NoticeBar& notice() { return *notice_; }
  Recording& recording() { return recording_; }
  // Nothing runs, nothing is asked and the views are painted.
  bool idle() const;

 protected:
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void makeMenus();
  void connectActions();
  void connectWishes();
  void connectSession();
  void updateActions();
  void updateReports();
  void updateOptions();
  void updateAlerts();
  void updateBreakOn();
  void updateProgress();
  void fitByRecompute();
  void tellOfBuildDeath(const BuildDeath& death);
  Selection complete(Selection selection) const;
  View* makeView(const QString& id);
  void showStartPage(bool show);
  void selectNextAlert();
  void moveSelection(int by);
  void focusOrFit();
  View* viewWithGroups() const;  // the active one, or one next to it: all show the same selection
  void setBreakOn(bool nan, bool inf);
  void switchTheme();
  void scaleText(double factor);
  void setOptionUndoable(const QString& name, const QString& value);
  void pushOptions();
  void remember();
  void restore();
  // What was remembered; a part that cannot be understood goes to the log, once.
  SettingsReader remembered();
  void connectFiles();
  void connectReturn();
  void keepPlace();  // for a window that comes after this one
  void goBack(const SessionPlace& place);
  void continueBack();
  void showSetUp();   // of the model that was read
  void closeSetUp();  // another file is opened
  // Beside the views. What is open stays until another model is built or looked at. The dialog, to be told more.
  class SetUpDialog* showSetUpOf(const ModelPtr& model, const snapshot::Configure& before, const QString& path);
  void connectPeek();
  void beginRecording();
  void askFile(const QString& title, const QString& name, const QString& filter,
               const std::function<void(const QString&)>& then);
  // An existing file; one dialog for the life of the window, as askFile.
  void askExisting(const QString& title, const QString& filter, const std::function<void(const QString&)>& then);
  void connectArrays();  // .npy files: load, save, compare
  void noteFile(const QString& path);
  void noteSetUp();                                    // of the model that was built
  snapshot::Configure lastSetUp(const QString& path);  // of a model; empty when it was never built
  void listFiles();

  bool remember_;
  SnapshotStore store_;
  SelectionModel selection_;
  Wishes wishes_;
  Session session_;
  Recording recording_;
  BuildKeeper keeper_{store_, session_};
  LabWiring lab_{store_, wishes_, session_, recording_, remember_};
  ModelPeek peek_;  // at a model while another one is open
  SourceReader sources_;
  ScratchFolder scratch_;  // projects of windows that remember nothing
  Palette* palette_ = nullptr;
  bool scripted_ = false;
  int setUps_ = 0;  // that were asked for
  QUndoStack undo_;
  QElapsedTimer focused_;  // since "focus" was asked for
  QString askedLimit_;     // of memory, the newest one that was asked for
  OptionSettings wanted_;  // options that were asked for in this turn of the event loop
  Actions* actions_;
  Toolbar* toolbar_;
  NoticeBar* notice_;
  QHBoxLayout* middle_;  // the pages, and the set-up beside them
  QStackedWidget* pages_;
  PanelBoard* board_;
  View* start_ = nullptr;
  StatusLine* status_;
  QMenu* mainMenu_;
  QMenu* layoutMenu_;
  QMenu* exportMenu_;
  QMenu* breakMenu_;
  QString layoutName_;
  QString projectPath_;
  QFileDialog* saveDialog_ = nullptr;
  std::function<void(const QString&)> save_;  // what its answer is for
  QFileDialog* existingDialog_ = nullptr;
  std::function<void(const QString&)> existing_;
  std::vector<Layout> saved_;
  QStringList toldOfSettings_;
  int alertPlace_ = -1;
  QTimer progressTimer_;
  std::unique_ptr<SessionMark> mark_;  // null: nothing is remembered
  QTimer markTimer_;
  std::optional<SessionPlace> back_;  // on the way to it
  int backMoves_ = 0;                 // made so far: to the step, to the instruction
  QThreadPool bundles_;               // last: waits for its threads before the rest goes
};

}  // namespace stepscope

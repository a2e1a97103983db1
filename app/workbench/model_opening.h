// SPDX-License-Identifier: GPL-3.0-or-later
// The way from a file to a built model: what a path means, the look at another model, the set-up beside the views. GUI
// thread.
//
// What is open stays until another model is built or looked at.
#pragma once

#include <QObject>
#include <functional>

#include "app/workbench/model_peek.h"
#include "app/workbench/window_parts.h"
#include "engine/snapshot/worker.pb.h"

class QBoxLayout;

namespace stepscope {

class FileQuestions;
class RecentFiles;
class SetUpDialog;

class ModelOpening : public QObject {
  Q_OBJECT

 public:
  // The set-up stands at the end of `middle`, beside `pages`, which give way to it.
  ModelOpening(const WindowParts& parts, FileQuestions& questions, RecentFiles& files, QBoxLayout& middle, QWidget& pages);

  // A model is inspected and the set-up shown; a project is opened read-only.
  void open(const QString& path);
  // A model is built at once with these settings on top of what inspection proposes; no set-up is shown unless they are
  // refused.
  void openAndBuild(const QString& path, const snapshot::Configure& configuration);
  // The loop of the script that is attached, which runs on.
  void openAttached();
  // The set-up of the next build is known: neither it nor what is refused of it is shown in the set-up.
  void setScripted() {
    scripted_ = true;
    comesBack_ = false;
  }
  void showSetUp();  // of the model that was read
  void leave() { closeSetUp(); }
  bool leaveSetUp();  // as its Cancel does; false: none is shown
  bool setUpShown() const;
  // Batches that the set-up asked to be sent, where they lie now.
  void dataSent(const QString& path);
  // A file that is opened: asked for in a dialog.
  void ask();
  // Keeps what was trained, before another model takes its place; then calls it.
  void setKeeper(std::function<void(std::function<void()>)> keeper) { keeper_ = std::move(keeper); }

 signals:
  void sendingWanted(const QString& path);  // of batches that the worker's machine does not have; dataSent() follows
  void askedThere();                        // for a model of another machine, where the worker is
  void begun();                             // another file is opened
  void choosing();                          // a set-up that a person filled in is built
  void peeked(const QString& path);         // a model was read beside the one that is open
  void lookedAt();                          // the graph of a model that is not built is shown
  // A model was built that is to fit into `limit`.
  void fitWanted(const QString& limit);

 private:
  void openThere(const QString& path);
  void read(const QString& path, const QString& missingWeights);
  void openDetached(std::function<void()> open);
  void connectPeek();
  void tellMadeUpData();  // of a model that is built without that anybody was asked for data
  void offerSending(SetUpDialog& dialog);
  void buildToFit(const snapshot::Configure& configuration, const QString& limit);
  void closeSetUp();
  // Calls it once what was trained is kept; while a run is on only when the person agrees to its end, in the notice bar.
  void inPlaceOfARun(const QString& path, std::function<void()> open);
  void offerMore(SetUpDialog& dialog);
  SetUpDialog* showSetUpOf(const ModelPtr& model, const snapshot::Configure& before, const QString& path,
                           const QString& missingWeights = {});

  WindowParts parts_;
  ModelSession& session_;
  SnapshotStore& store_;
  FileQuestions& questions_;
  RecentFiles& files_;
  QBoxLayout& middle_;
  QWidget& pages_;
  ModelPeek peek_;  // at a model while another one is open
  std::function<void(std::function<void()>)> keeper_;
  bool scripted_ = false;
  bool comesBack_ = false;      // a scripted build that is refused, to a set-up with its settings
  snapshot::Configure wanted_;  // of the newest set-up that was built, or was to be
  QString wantedFor_;           // its model
  QString wantedWeights_;       // what it does where the model has no data of a weight
  ModelPtr wantedModel_;        // the same
  int setUps_ = 0;              // that were asked for
};

}  // namespace stepscope

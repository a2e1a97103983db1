// SPDX-License-Identifier: GPL-3.0-or-later
// The model that is open: read from its file, configured, built, left.
#pragma once

#include "app/workbench/session/desired_state.h"
#include "app/workbench/session/session_link.h"
#include "app/workbench/session/source_marks.h"

namespace stepscope {

class SessionModel : public SessionPart {
  Q_OBJECT

 public:
  explicit SessionModel(const SessionParts& parts) : SessionPart(parts) {}

  const QString& path() const { return path_; }
  bool built() const { return built_; }
  bool inWorker() const { return inWorker_; }            // built in the worker that is there, not only in one before it
  std::int64_t firstStep() const { return firstStep_; }  // that a worker of its own begins the run with
  const snapshot::Configure& configuration() const { return configuration_; }

  // Starts the worker when there is none and reads the model; modelInspected, notRead or problem follows. What runs is
  // stopped. What is open stays until the model was read.
  void inspect(const QString& path, const QString& missingWeights);
  // Configures the inspected model and builds it; built, problem or buildCancelled follows. A run is stopped for it,
  // anything else that moves the session ends first.
  void build(const snapshot::Configure& configuration);
  // inspect, then build with these settings.
  void openAndBuild(const QString& path, const snapshot::Configure& configuration, const QString& missingWeights);
  // The model that is built anew, with its settings or these and all that is desired of it, from the parameters of the
  // file.
  void newRun();
  void newRun(const snapshot::Configure& configuration);
  void close();
  void beginsAnew();  // from a state that was loaded
  void forget();      // and there is none to come back to
  void stageGraph(const QString& stage);
  // What is open, in a worker that does not know it.
  void reopen(bool wasBuilt);
  // Files that were written since the run was built, which a worker has read again: alerts "file_changed".
  void tellChangedFiles();
  // Graph, plan, options and place of the plan that runs now; the desires follow to it.
  void refreshBuild(Then then);

  // One that is read takes what the worker tells of it; what is open stays until it was.
  bool opening() const { return opening_.has_value(); }
  void read(ModelPtr model) { opening_->model = std::move(model); }
  void told(const snapshot::SessionState& state) { workerHasPlan_ = state.built(); }
  void read(const snapshot::Alert& alert) { opening_->alerts.push_back(alert); }
  bool building() const { return building_; }  // by a request of its own

  void addOptions(const OptionSettings& settings);  // to the configuration, for the next worker
  void shownIsConfigured() { shownWith_ = configuration_; }
  // The worker died of no build: another set-up that it was given and did not build is given up.
  void dropDiedSetUp() {
    if (built_ && store_.building()) configuration_ = shownWith_;
  }
  // The configuration of the build that its worker died of. Where a plan is `shown`, the one of it is configured again.
  void diedOf(const OptionSettings& sent, const OptionSettings& waiting, bool shown);
  void configureWithout(const QString& pass);  // what a worker died of
  void workerDied() {
    opening_.reset();
    inWorker_ = false;
  }
  void workerUnresponsive();  // it does not stop for the model that is wanted now
  void becameIdle();          // reads the model that is wanted
  void forgetWanted() { wanted_.reset(); }

 signals:
  void readCancelled();  // what was open still is

 private:
  struct Opening {
    QString path, missingWeights, pathBefore, missingWeightsBefore;
    ModelPtr model = nullptr;
    std::vector<snapshot::Alert> alerts = {};
  };

  void read(const Opening& opening);
  void wasRead();
  void wasNotRead(bool hadWorker);
  void tellUnread(const QString& why);
  void notAgain(const QString& what);  // what was open is not in the new worker
  void look();
  void leave();  // what is open
  void wasBuilt();
  struct Reading {
    ShownPlan before;
    Then then;
    Then givenUp = {};  // where a cancel is meant for the plan itself: what was shown is shown again
    int pauses = 0;     // when the plan was asked for
  };
  struct NextBuild {
    snapshot::Configure configuration;
    int pauses = 0;
  };
  void readBuild(int part, const Reading& reading);
  struct BeforeBuild {
    snapshot::Configure configuration;
    std::optional<snapshot::Position> place;  // empty: nothing was built
    std::vector<snapshot::PhaseSpan> phases;
    bool replaced = false;  // the worker came to the end of the build that is given up
  };
  void buildFailed(const BeforeBuild& before, const QString& why);
  void buildAgain(const BeforeBuild& before, bool otherState);
  void askWhatStands(const BeforeBuild& before);
  void configureAgain(const snapshot::Configure& configuration);

  QString path_, missingWeights_;
  snapshot::Configure configuration_;
  snapshot::Configure shownWith_;                // of the plan that is shown
  std::optional<snapshot::Configure> diedWith_;  // of the build that its worker died of
  std::int64_t firstStep_ = 0;
  SourceMarks files_;  // of the plan that is shown
  bool built_ = false, inWorker_ = false;
  bool building_ = false;
  bool workerHasPlan_ = false;  // when it was last asked
  QString refusal_;             // why the newest build failed
  std::optional<Opening> opening_;
  std::optional<Opening> wanted_;       // as soon as what runs has stopped
  std::optional<NextBuild> nextBuild_;  // likewise
};

}  // namespace stepscope

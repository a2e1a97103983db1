// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/recording.h"

#include <algorithm>
#include <utility>

#include "app/workbench/places.h"
#include "app/workbench/project_files.h"
#include "app/workbench/project_reader.h"
#include "app/workbench/scratch_folder.h"
#include "views/common/findings.h"
#include "views/common/format.h"

namespace stepscope {

Recording::Recording(SnapshotStore& store, QObject* parent)
    : QObject(parent),
      store_(store),
      reads_(store.project()),
      queries_(store, threads_, reads_),
      earlier_(store, threads_, reads_) {
  connect(&threads_, &ProjectThreads::outOfMemory, this, [this] {
    reads_.cancel();  // the one among them has no answer
    emit failed(QStringLiteral("The system gave no more memory; expected enough for the project"));
  });
  connect(&queries_, &ProjectQueries::failed, this, &Recording::failed);
  connect(&queries_, &ProjectQueries::reported, this, &Recording::reported);
  connect(&timer_, &QTimer::timeout, this, &Recording::tellState);
  timer_.start(1000);
}

Recording::~Recording() {
  queries_.cancelSql();
  reads_.cancel();
  threads_.post([status = endsAs_](Core& core) {
    missStages(core);
    if (core.recorder) core.recorder->endRun(status);
    core.recorder.reset();
  });
  threads_.finish();
}

void Recording::begin(const QString& projectPath, storage::RunInfo info) {
  recording_ = true;
  run_ = 0;
  queries_.setRun(0);
  ++shows_;
  builds_ = 0;
  told_.clear();
  threads_.post([this, projectPath, shows = shows_, info = std::move(info)](Core& core) mutable {
    missStages(core);
    core.recorder.reset();
    StartedRecorder started = startRecorder(projectPath);
    const QString why = format::visible(started.why);
    if (!started.recorder) {
      threads_.back([this, why] {
        recording_ = false;
        store_.project().setStartupHistory({});  // would tell of other builds than the one shown
        emit failed(QStringLiteral("Nothing is recorded: %1").arg(why));
        emit stateChanged(QStringLiteral("not recording"), QStringLiteral("error"), why);
        emit troubled({});
      });
      return;
    }
    core.recorder = std::move(started.recorder);
    core.path = started.path;
    const std::int64_t run = core.recorder->beginRun(std::move(info));
    threads_.back([this, run, begins = shows, path = started.path, projectPath, refuge = started.refuge, why] {
      if (begins == shows_) run_ = run;
      queries_.setProject(path);
      store_.project().setWhyNotWritable({});
      if (refuge)
        emit elsewhere(
            path,
            QStringLiteral("The run is recorded in '%1', for '%2' cannot be written (%3); copy it from there to keep it")
                .arg(format::visible(path), format::visible(projectPath), why));
      else if (path != projectPath)
        emit besideAnother(path);
      emit begun();
    });
  });
  queries_.refreshRuns();
}

void Recording::phases() {
  if (!recording_) return;
  threads_.post([phases = store_.phases(), again = builds_++ > 0](Core& core) {
    missStages(core);
    if (!core.recorder) return;
    if (again) core.recorder->beginBuild();
    core.recorder->phases(phases);
  });
}

void Recording::build() {
  if (!recording_) return;
  threads_.post([graph = store_.graph(), plan = store_.plan(), options = store_.options(),
                 stages = static_cast<int>(store_.stages().size())](Core& core) {
    if (!core.recorder) return;
    core.recorder->options(options);
    if (graph) core.recorder->graph(graph->graph(), stages);
    if (plan) core.recorder->plan(plan->plan());
    core.stagesLeft = graph ? std::max(0, stages - 1) : 0;
  });
  queries_.refreshStartupHistory();
}

void Recording::planResumed(const QString& signature) {
  if (!recording_) return;
  threads_.post([signature = signature.toStdString()](Core& core) {
    if (core.recorder) core.recorder->planResumed(signature);
  });
}

void Recording::determinism() {
  if (!recording_) return;
  threads_.post([nodes = store_.determinismList()](Core& core) {
    if (core.recorder) core.recorder->determinism(nodes);
  });
}

void Recording::stage(const GraphPtr& graph, int stage) {
  if (!recording_) return;
  threads_.post([graph, stage](Core& core) {
    if (!core.recorder) return;
    core.recorder->stageGraph(graph->graph(), stage);
    core.stagesLeft = stage;
  });
}

void Recording::missStages(Core& core) {
  if (core.recorder && core.stagesLeft > 0)
    core.recorder->lost("graphs", core.stagesLeft,
                        "the next build, or the end of the run, came before the graphs of its phases were read",
                        "wait a moment after a build");
  core.stagesLeft = 0;
}

void Recording::step(const StepPtr& step, bool walked) {
  if (!recording_) return;
  ++load_->steps;
  if (waiting_ && waitingAt_ == threads_.posted() && waiting_->add(step, walked)) return;
  auto steps = std::make_shared<WaitingSteps>();
  steps->add(step, walked);
  threads_.post([steps, load = load_](Core& core) {
    for (const auto& [each, byHand] : steps->take()) {
      if (core.recorder) core.recorder->step(*each, byHand);
      --load->steps;
    }
  });
  waiting_ = std::move(steps);
  waitingAt_ = threads_.posted();
}

bool Recording::behind() {
  if (!recording_) return false;
  if (!load_->asked.exchange(true)) {
    threads_.post([load = load_](Core& core) {
      const auto state = core.recorder ? core.recorder->state() : storage::RecorderState{};
      load->bytes = state.health == storage::RecorderState::Health::kRecording ? state.waitingBytes : 0;
      load->asked = false;
    });
  }
  return load_->tooMuch();
}

void Recording::end(storage::RunStatus status) {
  if (!recording_) return;
  recording_ = false;
  threads_.post([status](Core& core) {
    if (!core.recorder) return;
    missStages(core);
    core.recorder->endRun(status);
    core.recorder.reset();
  });
  emit stateChanged({}, {}, {});
  emit troubled({});
}

void Recording::open(const QString& path, std::int64_t run) {
  const auto stop =
      reads_.begin(ProjectReads::What::kProject, QStringLiteral("Reading %1").arg(format::visible(path.section('/', -1))));
  threads_.read([this, path, run, stop, show = ++shows_](const QString&) {
    QString readable = path;
    auto facts = readProject(path, run, stop.get());
    if (!facts && !*stop) {
      // SQLite makes a file beside a project whose writer was killed, which a folder that cannot be written refuses.
      if (!copies_) copies_ = std::make_unique<ScratchFolder>();
      if (const QString copy = copyWithRest(path, copies_->path()); !copy.isEmpty()) {
        if (auto again = readProject(copy, run, stop.get())) {
          facts = std::move(again);
          readable = copy;
        }
      }
    }
    if (!facts) {
      threads_.back([this, stop, text = facts.error().message] {
        if (reads_.end(stop)) emit failed(format::visible(text));
      });
      return;
    }
    const QString why = facts->damaged ? QStringLiteral("The file is damaged: what is shown is a copy of what can be read")
                                       : whyNotWritable(path);
    threads_.back(
        [this, path, readable, run, stop, show, why, facts = std::make_shared<ProjectContents>(std::move(*facts))] {
          if (!reads_.end(stop) || show != shows_) return;  // something else was opened since
          emit opening();
          end(storage::RunStatus::kFinished);
          queries_.setRun(run);
          threads_.post([readable](Core& c) { c.path = readable; });
          // Not in the turn that emptied the views.
          threads_.back([this, path, show, why, facts] {
            if (show != shows_) return;
            queries_.setProject(path);
            store_.project().setWhyNotWritable(why);
            stepscope::show(*facts, store_);
            emit opened(path);
            if (facts->damaged) emit damaged(facts->warnings);
            queries_.refreshStartupHistory();
          });
        });
  });
}

void Recording::readStage(const QString& stage) {
  threads_.read([this, stage, run = queries_.run(), show = shows_](const QString& path) {
    auto graph = readStageGraph(path, run, stage);
    if (!graph) return threads_.back([this, text = graph.error().message] { emit failed(format::visible(text)); });
    threads_.back([this, stage, show, graph = std::move(*graph)] {
      if (show == shows_ && store_.readOnly()) store_.addStage(stage, graph);
    });
  });
}

void Recording::deleteRun(qint64 run) {
  threads_.post([this, run, path = store_.project().projectPath().toStdString(), shown = queries_.run()](Core& core) {
    storage::Result<bool> newest = false;
    if (!core.recorder)
      newest = deleteFromFile(path, run);
    else if (const auto forgotten = core.recorder->forgetRun(run); !forgotten)
      newest = tl::make_unexpected(forgotten.error());
    if (!newest) {
      const QString why = format::visible(newest.error().message);
      // Errors of the run itself name it.
      const auto code = newest.error().code;
      const bool named = code == storage::ErrorCode::kNotFound || code == storage::ErrorCode::kInvalidArgument;
      threads_.back([this, run, why, named] { emit failed(named ? why : QStringLiteral("run %1: %2").arg(run).arg(why)); });
      return;
    }
    threads_.back([this, run, path, next = shown == run || (shown == 0 && *newest)] {
      if (next && store_.readOnly())
        open(QString::fromStdString(path), 0);  // what was shown is gone
      else
        queries_.refreshRuns();
      emit deleted(run);
    });
  });
}

}  // namespace stepscope

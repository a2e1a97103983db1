// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/recording.h"

#include <QApplication>
#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "app/workbench/comparison_reader.h"
#include "app/workbench/places.h"
#include "app/workbench/project_reader.h"
#include "app/workbench/report_pdf.h"
#include "app/workbench/scratch_folder.h"
#include "storage/judged_steps.h"
#include "storage/queries.h"
#include "storage/report/report.h"
#include "storage/retention.h"
#include "storage/schema.h"
#include "storage/sql.h"
#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/run_times.h"

namespace stepscope {

struct Recording::Core {
  std::unique_ptr<storage::Recorder> recorder;
  QString path;        // of the project that is recorded or shown
  int stagesLeft = 0;  // graphs of the newest build that were not handed over
};

// Steps that came without anything else between them are one job.
struct Recording::Steps {
  std::mutex mutex;
  std::vector<std::pair<StepPtr, bool>> steps;  // and whether they were walked by hand
  bool taken = false;

  bool add(const StepPtr& step, bool walked) {
    const std::lock_guard lock(mutex);
    if (!taken) steps.emplace_back(step, walked);
    return !taken;
  }
  std::vector<std::pair<StepPtr, bool>> take() {
    const std::lock_guard lock(mutex);
    taken = true;
    return std::exchange(steps, {});
  }
};

Recording::Recording(SnapshotStore& store, QObject* parent)
    : QObject(parent),
      store_(store),
      core_(std::make_shared<Core>()),
      cancelSql_(std::make_shared<std::atomic<bool>>(false)),
      comparisons_(std::make_shared<std::atomic<int>>(0)),
      ending_(std::make_shared<std::atomic<bool>>(false)) {
  pool_.setMaxThreadCount(1);
  pool_.setThreadPriority(QThread::LowPriority);
  readers_.setMaxThreadCount(1);
  readers_.setThreadPriority(QThread::LowPriority);
  connect(&timer_, &QTimer::timeout, this, &Recording::tellState);
  timer_.start(1000);
  std::vector<SqlTable> tables;
  std::vector<storage::Table> all = storage::tables();
  const auto steps = std::find_if(all.begin(), all.end(), [](const storage::Table& table) { return table.name == "steps"; });
  all.insert(std::next(steps), storage::judgedStepsTable());
  for (const storage::Table& table : all) {
    SqlTable t{QString::fromUtf8(table.name.data(), static_cast<qsizetype>(table.name.size())),
               QString::fromUtf8(table.doc.data(), static_cast<qsizetype>(table.doc.size())),
               {}};
    for (const storage::Column& c : table.columns) {
      t.columns.emplace_back(QString::fromUtf8(c.name.data(), static_cast<qsizetype>(c.name.size())),
                             QString::fromUtf8(c.doc.data(), static_cast<qsizetype>(c.doc.size())));
    }
    tables.push_back(std::move(t));
  }
  store_.project().setTables(std::move(tables));
}

Recording::~Recording() {
  *ending_ = true;
  cancelSql();
  post([](Core& core) {
    missStages(core);
    core.recorder.reset();
  });
  pool_.waitForDone();
  readers_.waitForDone();
}

void Recording::run(const std::function<void()>& job) {
  try {
    job();
  } catch (const std::bad_alloc&) {
    back([this] { emit failed(tr("The system gave no more memory; expected enough for the project")); });
  }
  --jobs_;
}

void Recording::post(std::function<void(Core&)> job) {
  ++jobs_;
  waiting_.reset();
  pool_.start([this, core = core_, job = std::move(job)] { run([&] { job(*core); }); });
}

void Recording::read(std::function<void(const QString&)> job) {
  ++jobs_;
  post([this, job = std::move(job)](Core& core) {
    if (core.recorder) (void)core.recorder->flush();
    readers_.start([this, path = core.path, job, ending = ending_] {
      run([&] {
        if (!*ending) job(path);
      });
    });
  });
}

void Recording::back(std::function<void()> then) { QMetaObject::invokeMethod(this, std::move(then), Qt::QueuedConnection); }

void Recording::begin(const QString& projectPath, storage::RunInfo info) {
  recording_ = true;
  shownRun_ = 0;
  ++shows_;
  builds_ = 0;
  told_.clear();
  post([this, projectPath, info = std::move(info)](Core& core) mutable {
    missStages(core);
    core.recorder.reset();
    const QFileInfo file(projectPath);
    QDir().mkpath(file.absolutePath());
    std::string why;
    for (int n = 1; n <= 9 && !core.recorder; ++n) {
      const QString path =
          n == 1 ? projectPath
                 : file.absolutePath() + '/' + file.completeBaseName() + QStringLiteral("-%1.stepscope").arg(n);
      auto project = storage::Project::openForWriting(path.toStdString());
      if (!project) {
        why = project.error().message;
        if (project.error().code == storage::ErrorCode::kLocked) continue;
        break;
      }
      auto recorder = storage::Recorder::start(std::move(*project));
      if (!recorder) {
        why = recorder.error().message;
        break;
      }
      core.recorder = std::move(*recorder);
      core.path = path;
    }
    QString refuge;
    if (!core.recorder) {
      QTemporaryDir folder(QDir::tempPath() + QStringLiteral("/stepscope-XXXXXX"));
      refuge = folder.filePath(file.fileName());
      auto project = storage::Project::openForWriting(refuge.toStdString());
      auto recorder = project ? storage::Recorder::start(std::move(*project)) : tl::make_unexpected(project.error());
      if (recorder) {
        folder.setAutoRemove(false);
        core.recorder = std::move(*recorder);
        core.path = refuge;
      }
    }
    if (!core.recorder) {
      back([this, why] {
        recording_ = false;
        store_.project().setStartupHistory({});  // would tell of other builds than the one shown
        emit failed(tr("Nothing is recorded: %1").arg(format::visible(why)));
        emit stateChanged(tr("not recording"), QStringLiteral("error"), format::visible(why));
      });
      return;
    }
    core.recorder->beginRun(std::move(info));
    back([this, path = core.path, projectPath, refuge, why] {
      setProject(path);
      if (path == refuge)
        emit elsewhere(path,
                       tr("The run is recorded in '%1', for '%2' cannot be written (%3); copy it from there to keep it")
                           .arg(format::visible(path), format::visible(projectPath), format::visible(why)));
      else if (path != projectPath)
        emit besideAnother(path);
    });
  });
  refreshRuns();
}

void Recording::phases() {
  if (!recording_) return;
  post([phases = store_.phases(), again = builds_++ > 0](Core& core) {
    missStages(core);
    if (!core.recorder) return;
    if (again) core.recorder->beginBuild();
    core.recorder->phases(phases);
  });
}

void Recording::build() {
  if (!recording_) return;
  post([graph = store_.graph(), plan = store_.plan(), options = store_.options(),
        stages = static_cast<int>(store_.stages().size())](Core& core) {
    if (!core.recorder) return;
    core.recorder->options(options);
    if (graph) core.recorder->graph(graph->graph(), stages);
    if (plan) core.recorder->plan(plan->plan());
    core.stagesLeft = graph ? std::max(0, stages - 1) : 0;
  });
  refreshStartupHistory();
}

void Recording::nameRun(const QString& name) {
  if (!recording_) return;
  post([name = name.toStdString()](Core& core) {
    if (core.recorder) core.recorder->nameRun(name);
  });
  refreshRuns();
}

void Recording::planResumed(const QString& signature) {
  if (!recording_) return;
  post([signature = signature.toStdString()](Core& core) {
    if (core.recorder) core.recorder->planResumed(signature);
  });
}

void Recording::determinism() {
  if (!recording_) return;
  post([nodes = store_.determinismList()](Core& core) {
    if (core.recorder) core.recorder->determinism(nodes);
  });
}

void Recording::stage(const GraphPtr& graph, int stage) {
  if (!recording_) return;
  post([graph, stage](Core& core) {
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
  if (waiting_ && waiting_->add(step, walked)) return;
  auto steps = std::make_shared<Steps>();
  steps->add(step, walked);
  post([steps](Core& core) {
    for (const auto& [each, byHand] : steps->take())
      if (core.recorder) core.recorder->step(*each, byHand);
  });
  waiting_ = std::move(steps);
}

void Recording::alert(const snapshot::Alert& alert) {
  if (!recording_) return;
  post([alert](Core& core) {
    if (core.recorder) core.recorder->alert(alert);
  });
}

void Recording::trials() {
  if (!recording_) return;
  post([report = store_.findings().trials().report()](Core& core) {
    if (core.recorder) core.recorder->trials(report);
  });
}

void Recording::statistics(const snapshot::TensorData& value) {
  if (!recording_ || !value.unavailable().empty() || value.statistics().count() == 0) return;
  std::string now = std::to_string(value.step()) + value.statistics().SerializeAsString();
  std::string& before = told_[value.value()];
  if (now == before) return;
  before = std::move(now);
  post([step = value.step(), id = value.value(), name = value.name(), statistics = value.statistics()](Core& core) {
    if (core.recorder) core.recorder->tensorStats(step, id, name, statistics);
  });
}

void Recording::end(storage::RunStatus status) {
  if (!recording_) return;
  recording_ = false;
  post([status](Core& core) {
    if (!core.recorder) return;
    missStages(core);
    core.recorder->endRun(status);
    core.recorder.reset();
  });
  emit stateChanged({}, {}, {});
}

void Recording::open(const QString& path, std::int64_t run) {
  read([this, path, run, show = ++shows_](const QString&) {
    QString readable = path;
    auto facts = readProject(path, run);
    if (!facts) {
      // SQLite makes a file beside a project whose writer was killed, which a folder that cannot be written refuses.
      if (!copies_) copies_ = std::make_unique<ScratchFolder>();
      if (const QString copy = copyWithRest(path, copies_->path()); !copy.isEmpty()) {
        if (auto again = readProject(copy, run)) {
          facts = std::move(again);
          readable = copy;
        }
      }
    }
    if (!facts) {
      back([this, text = facts.error().message] { emit failed(format::visible(text)); });
      return;
    }
    back([this, path, readable, run, show, facts = std::make_shared<ProjectContents>(std::move(*facts))] {
      if (show != shows_) return;  // something else was opened since
      emit opening();
      end(storage::RunStatus::kFinished);
      shownRun_ = run;
      post([readable](Core& c) { c.path = readable; });
      // Not in the turn that emptied the views.
      back([this, path, show, facts] {
        if (show != shows_) return;
        setProject(path);
        stepscope::show(*facts, store_);
        emit opened(path);
        if (facts->damaged) emit damaged(facts->warnings);
        refreshStartupHistory();
      });
    });
  });
}

void Recording::readStage(const QString& stage) {
  read([this, stage, run = shownRun_, show = shows_](const QString& path) {
    auto graph = readStageGraph(path, run, stage);
    if (!graph) return back([this, text = graph.error().message] { emit failed(format::visible(text)); });
    back([this, stage, show, graph = std::move(*graph)] {
      if (show == shows_ && store_.readOnly()) store_.addStage(stage, graph);
    });
  });
}

void Recording::setProject(const QString& path) {
  const bool another = path != store_.project().projectPath();
  store_.project().setProjectPath(path);
  if (!another) return;
  store_.project().setRuns({});
  store_.project().clearComparison();
  store_.project().setStartupHistory({});
}

void Recording::compare(const CompareRequest& request) {
  store_.project().setCompareRequest(request);
  if (!request.complete()) return;
  const int number = ++*comparisons_;
  read([this, request, number, newest = comparisons_](const QString& path) {
    if (number != *newest) return;
    auto found = readComparison(path, request);
    QString error = found ? QString() : format::visible(found.error().message);
    const QString threads = found ? found->threads : QString();
    RunComparisonPtr result = found ? std::make_shared<const RunComparison>(std::move(found->comparison)) : nullptr;
    back([this, number, request, error, threads, result] {
      if (number != *comparisons_) return;
      RunTimes::of(store_.project()).setThreads(request, threads);
      store_.project().setRunComparison(result, error);
    });
  });
}

void Recording::listOtherRuns(const QString& path) {
  read([this, path](const QString&) {
    std::map<std::int64_t, StepTimes> times;
    auto runs = readRuns(path, &times);
    if (!runs) return back([this, text = runs.error().message] { emit failed(format::visible(text)); });
    back([this, path, runs = std::move(*runs), times = std::move(times)] {
      RunTimes::of(store_.project()).setOther(path, times);
      store_.project().setOtherRuns(path, runs);
    });
  });
}

void Recording::deleteRun(qint64 run) {
  post([this, run, path = store_.project().projectPath().toStdString(), shown = shownRun_](Core& core) {
    const auto refuse = [&](const std::string& why) {
      back([this, run, why] { emit failed(tr("run %1: %2").arg(run).arg(format::visible(why))); });
    };
    if (core.recorder) return refuse("the project is being recorded; expected one that is only looked at");
    bool newest = false;
    {
      auto project = storage::Project::openForWriting(path);
      if (!project) return refuse(project.error().message);
      const auto last = storage::newestRun(*project);
      newest = last && *last == run;
      if (const auto deleted = storage::deleteRun(*project, run); !deleted) return refuse(deleted.error().message);
    }
    back([this, run, path, next = shown == run || (shown == 0 && newest)] {
      if (next && store_.readOnly())
        open(QString::fromStdString(path), 0);  // what was shown is gone
      else
        refreshRuns();
      emit deleted(run);
    });
  });
}

void Recording::refreshStartupHistory() {
  read([this, run = shownRun_](const QString& path) {
    if (path.isEmpty()) return;
    if (auto history = readStartupHistory(path, run))
      back([this, history = std::move(*history)] { store_.project().setStartupHistory(history); });
  });
}

void Recording::refreshRuns() {
  read([this](const QString& path) {
    if (path.isEmpty()) return;
    std::map<std::int64_t, StepTimes> times;
    auto runs = readRuns(path, &times);
    if (!runs) return;
    back([this, runs = std::move(*runs), times = std::move(times)] {
      RunTimes::of(store_.project()).set(times);
      store_.project().setRuns(runs);
    });
  });
}

void Recording::runSql(const QString& query) {
  store_.project().setSqlRunning(true);
  cancelSql_->store(false);
  read([this, query, cancel = cancelSql_](const QString& path) {
    SqlAnswer answer;
    answer.query = query;
    auto project = storage::Project::openReadOnly(path.toStdString());
    storage::Result<storage::SqlResult> result = tl::make_unexpected(project ? storage::Error{} : project.error());
    if (project) result = storage::runSql(*project, query.toStdString(), {}, cancel.get());
    if (!result) {
      answer.error = format::visible(result.error().message);
    } else {
      for (const auto& c : result->columns) answer.columns << QString::fromStdString(c);
      answer.numeric.assign(result->columns.size(), true);
      for (const auto& row : result->rows) {
        QStringList cells;
        for (std::size_t c = 0; c < row.size(); ++c) {
          cells << QString::fromStdString(storage::sqlCellText(row[c]));
          if (c < answer.numeric.size() &&
              (std::holds_alternative<std::string>(row[c]) || std::holds_alternative<storage::SqlBlob>(row[c])))
            answer.numeric[c] = false;
        }
        answer.rows.push_back(std::move(cells));
      }
      answer.truncated = result->truncated;
      answer.ns = result->time.count();
    }
    back([this, answer = std::move(answer)]() mutable { store_.project().setSql(std::move(answer)); });
  });
}

void Recording::report(const QString& path) {
  read([this, path, run = shownRun_](const QString& projectPath) {
    const auto fail = [this, path](const std::string& why) {
      const bool named = why.starts_with("report '");
      back([this, path, why, named] {
        emit failed(named ? format::visible(why) : tr("report '%1': %2").arg(format::visible(path), format::visible(why)));
      });
    };
    if (projectPath.isEmpty()) return fail("no run is recorded yet; expected a built model or an open project");
    auto project = storage::Project::openReadOnly(projectPath.toStdString());
    if (!project) return fail(project.error().message);
    const bool pdf = path.endsWith(QStringLiteral(".pdf"), Qt::CaseInsensitive);
    const ScratchFolder between;
    const QString written = pdf ? between.filePath(QStringLiteral("report.html")) : path;
    const auto status = storage::writeReport(*project, run, written.toStdString());
    if (!status) return fail(status.error().message);
    if (pdf) {
      QFile html(written);
      if (!html.open(QIODevice::ReadOnly)) return fail("the HTML it is printed from cannot be read");
      const QString text = QString::fromUtf8(html.readAll());
      if (const QString why = printReport(text, path); !why.isEmpty()) return fail(why.toStdString());
    }
    back([this, path] { emit reported(path); });
  });
}

void Recording::tellState() {
  if (!recording_) return;
  post([this](Core& core) {
    if (!core.recorder) return;
    const storage::RecorderState state = core.recorder->state();
    back([this, state, path = core.path] {
      if (!recording_) return;
      const QString tip = tr("%1\n%2 steps on disk, %3 waiting, %4 records lost")
                              .arg(format::visible(path), format::count(state.committedSteps), format::count(state.waiting),
                                   format::count(state.lost));
      using Health = storage::RecorderState::Health;
      if (state.health == Health::kRecording) {
        emit stateChanged(state.lost > 0 ? tr("recording, records lost") : tr("recording"),
                          state.lost > 0 ? QStringLiteral("warn") : QStringLiteral("ok"), tip);
      } else {
        emit stateChanged(state.health == Health::kPaused ? tr("recording paused") : tr("recording stopped"),
                          QStringLiteral("error"), format::visible(state.message) + '\n' + tip);
      }
    });
  });
}

}  // namespace stepscope

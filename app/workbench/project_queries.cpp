// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/project_queries.h"

#include <QFile>
#include <QTimer>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include "app/workbench/comparison_reader.h"
#include "app/workbench/print/report_pdf.h"
#include "app/workbench/project_reader.h"
#include "app/workbench/project_steps.h"
#include "app/workbench/pytorch_trace.h"
#include "storage/judged_steps.h"
#include "storage/queries.h"
#include "storage/report/data.h"
#include "storage/report/report.h"
#include "storage/report/run_document.h"
#include "storage/schema.h"
#include "storage/sql.h"
#include "views/common/chosen_step.h"
#include "views/common/format.h"
#include "views/common/run_times.h"

namespace stepscope {
namespace {

// What the SQL view lists: every table of a project, and the steps as they are judged.
std::vector<SqlTable> tablesOfProjects() {
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
  return tables;
}

// Steps are written at most 250 ms late (DESIGN.md, 6).
constexpr int kWrittenAfterMs = 600;

QString printed(const storage::Project& project, std::int64_t run, const QString& path, const std::atomic<bool>& stop) {
  const auto data = storage::readReportData(project, run);
  if (!data) return format::visible(data.error().message);
  const QString part = path + QStringLiteral(".part");  // it takes its place whole, or not at all
  QString why = stop ? QString() : print::printReport(storage::runDocument(*data), part);
  if (why.isEmpty() && !stop && std::rename(QFile::encodeName(part).constData(), QFile::encodeName(path).constData()) != 0)
    why = QStringLiteral("%1; expected a place that can be written").arg(QString::fromLocal8Bit(std::strerror(errno)));
  QFile::remove(part);
  return why;
}

// Why it is not written; empty: it is, or `stop` was set.
QString writeReport(const QString& projectPath, std::int64_t run, const QString& path, const std::atomic<bool>& stop) {
  const QString failure = QStringLiteral("report '%1': %2").arg(format::visible(path));
  if (projectPath.isEmpty())
    return failure.arg(QStringLiteral("no run is recorded yet; expected a built model or an open project"));
  const auto project = storage::Project::openReadOnly(projectPath.toStdString(), &stop);
  if (!project) return failure.arg(format::visible(project.error().message));
  if (path.endsWith(QStringLiteral(".pdf"), Qt::CaseInsensitive)) {
    const QString why = printed(*project, run, path, stop);
    return why.isEmpty() ? QString() : failure.arg(why);
  }
  const auto status = storage::writeReport(*project, run, path.toStdString());
  return status ? QString() : format::visible(status.error().message);  // it names the report, or the project
}

QString modelOf(const SnapshotStore& store) {
  return store.model() ? QString::fromStdString(store.model()->path()) : QString();
}

}  // namespace

ProjectQueries::ProjectQueries(SnapshotStore& store, ProjectThreads& threads, CancellableReads& reads)
    : store_(store), threads_(threads), reads_(reads), cancelSql_(std::make_shared<std::atomic<bool>>(false)) {
  store_.project().setTables(tablesOfProjects());
  connect(&store_, &SnapshotStore::planChanged, this, &ProjectQueries::planIsAnother);
  connect(&store_, &SnapshotStore::stepsChanged, this, &ProjectQueries::stepsMore);
}

void ProjectQueries::setProject(const QString& path) {
  const bool another = path != store_.project().projectPath();
  store_.project().setProjectPath(path);
  if (!another) return;
  store_.project().setRuns({});
  store_.project().clearComparison();
  store_.project().setStartupHistory({});
}

void ProjectQueries::closeProject() {
  reads_.dropAll();
  setProject({});
  store_.project().setSql({});
}

// A rewind is not in the file before the next step is. At full speed the steps are ahead of the position.
std::optional<std::int64_t> ProjectQueries::liveBefore() const {
  if (store_.readOnly() || !store_.plan()) return {};
  const auto& steps = store_.steps();
  return std::max(store_.position().step(), steps.empty() ? 0 : steps.back()->step() + 1);
}

void ProjectQueries::compare(const CompareRequest& request) {
  store_.project().setCompareRequest(request);
  reads_.drop(std::exchange(comparison_, nullptr));
  if (!request.complete()) return;
  comparison_ = reads_.begin(ProjectReads::What::kComparison,
                             QStringLiteral("Reading run %1 and run %2 of the comparison").arg(request.a).arg(request.b),
                             [this] { comparisonCancelled(); });
  threads_.read([this, request, stop = comparison_, live = liveBefore()](const QString& path) {
    if (*stop) return;
    auto found = readComparison(path, request, live, stop.get());
    QString error = found ? QString() : format::visible(found.error().message);
    const QString notes = found ? found->notes : QString();
    const bool alike = !found || found->alike;
    RunComparisonPtr result = found ? std::make_shared<const RunComparison>(std::move(found->comparison)) : nullptr;
    threads_.back([this, stop, request, error, notes, alike, result] {
      if (!reads_.end(stop)) return;
      RunTimes::of(store_.project()).setNotes(request, notes, alike);
      store_.project().setRunComparison(result, error);
    });
  });
}

// What was there before stays, with its pair.
void ProjectQueries::comparisonCancelled() {
  const RunComparisonPtr before = store_.project().runComparison();
  if (before) store_.project().setCompareRequest(before->request);
  store_.project().setRunComparison(
      before, before ? QString() : QStringLiteral("Reading them was cancelled; choose run A or B again."));
  if (before) emit told(QStringLiteral("The comparison was cancelled; the one before is shown"));
}

void ProjectQueries::listOtherRuns(const QString& path) {
  const QString name = format::visible(path.section('/', -1));
  const auto stop =
      reads_.begin(ProjectReads::What::kProject, QStringLiteral("Reading the runs of %1").arg(name),
                   [this, name] { emit told(QStringLiteral("Reading the runs of %1 was cancelled").arg(name)); });
  threads_.read([this, path, stop](const QString&) {
    std::map<std::int64_t, RunStepTimes> times;
    auto runs = readRuns(path, &times, {}, stop.get());
    if (!runs)
      return threads_.back([this, stop, text = runs.error().message] {
        if (reads_.end(stop)) emit failed(format::visible(text));
      });
    threads_.back([this, path, stop, runs = std::move(*runs), times = std::move(times)] {
      if (!reads_.end(stop)) return;
      RunTimes::of(store_.project()).setOther(path, times);
      store_.project().setOtherRuns(path, runs);
    });
  });
}

void ProjectQueries::refreshStartupHistory() {
  threads_.read([this, run = run_](const QString& path) {
    if (path.isEmpty()) return;
    if (auto history = readStartupHistory(path, run))
      threads_.back([this, history = std::move(*history)] { store_.project().setStartupHistory(history); });
  });
}

void ProjectQueries::refreshRuns() {
  const auto stop = reads_.begin(ProjectReads::What::kRuns, {});
  threads_.read([this, stop, live = liveBefore()](const QString& path) {
    std::map<std::int64_t, RunStepTimes> times;
    auto runs = path.isEmpty() ? storage::Result<std::vector<RunEntry>>(tl::make_unexpected(storage::Error{}))
                               : readRuns(path, &times, live, stop.get());
    threads_.back([this, stop, found = runs.has_value(), runs = std::move(runs).value_or(std::vector<RunEntry>()),
                   times = std::move(times)] {
      if (!reads_.end(stop) || !found) return;
      RunTimes::of(store_.project()).set(times);
      store_.project().setRuns(runs);
    });
  });
}

void ProjectQueries::showStep(std::int64_t step) {
  if (!ChosenStep::of(store_).choose(step)) return;
  reads_.drop(step_);
  step_ = reads_.begin(ProjectReads::What::kStep, QStringLiteral("Reading step %1 of the project").arg(step), [this, step] {
    ChosenStep::of(store_).set(step, nullptr, QStringLiteral("reading it was cancelled"));
  });
  threads_.read([this, step, stop = step_, run = run_](const QString& path) {
    if (*stop) return;  // another one is wanted by now
    PlanOfStep under;
    StepRanksPtr ranks;
    const auto read = [&]() -> storage::Result<StepPtr> {
      if (path.isEmpty()) return storage::fail(storage::ErrorCode::kNotFound, "nothing is recorded");
      SS_STORE_ASSIGN(const auto project, storage::Project::openReadOnly(path.toStdString(), stop.get()));
      return readStepRecord(project, run, step, under, ranks);
    };
    const auto found = read();
    const QString problem = found ? QString() : QString::fromStdString(found.error().message);
    threads_.back([this, step, stop, record = found.value_or(nullptr), under, ranks, problem] {
      if (!reads_.end(stop)) return;
      StepPlans::of(store_).setChosen(step, under);
      RankTimes::of(store_.project()).setChosen(ranks);
      ChosenStep::of(store_).set(step, record, problem);
    });
  });
}

void ProjectQueries::runSql(const QString& query) {
  store_.project().setSqlRunning(true);
  cancelSql_->store(false);
  threads_.read(
      [this, query, cancel = cancelSql_](const QString& path) {
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
        threads_.back([this, path, answer = std::move(answer)]() mutable {
          store_.project().setSql(path == store_.project().projectPath() ? std::move(answer) : SqlAnswer());
        });
      },
      ProjectThreads::Reader::kSql);
}

void ProjectQueries::importTrace(const QString& path) {
  threads_.read([this, path, run = run_, keep = store_.readOnly()](const QString& projectPath) {
    if (projectPath.isEmpty())
      return threads_.back([this] { emit failed(QStringLiteral("no run is recorded yet; expected an open project")); });
    auto found = importPyTorchTrace(projectPath, run, path, keep);
    if (!found) {
      const QString why = format::visible(found.error().message);
      return threads_.back([this, why] { emit failed(why); });
    }
    threads_.back([this, path, found = std::move(*found)] {
      trace_ = path;
      tracedModel_ = modelOf(store_);
      again_ = false;
      PyTorchTimes::of(store_.project()).set(found.rows);
      emit imported(found.text);
    });
  });
}

// Its instructions are other ones; those of the plan before would stand beside the wrong times.
void ProjectQueries::planIsAnother() {
  if (trace_.isEmpty() || store_.readOnly() || !store_.plan()) return;
  PyTorchTimes::of(store_.project()).set({});
  again_ = modelOf(store_) == tracedModel_;
  if (!again_) trace_.clear();
  lastBefore_ = store_.steps().empty() ? nullptr : store_.steps().back();
}

void ProjectQueries::stepsMore() {
  if (!again_ || store_.steps().empty() || store_.steps().back() == lastBefore_) return;
  again_ = false;
  QTimer::singleShot(kWrittenAfterMs, this, [this] {
    if (!trace_.isEmpty() && !store_.readOnly()) importTrace(trace_);
  });
}

void ProjectQueries::report(const QString& path) {
  const QString name = format::visible(path.section('/', -1));
  const auto stop = reads_.begin(ProjectReads::What::kReport, QStringLiteral("Writing %1").arg(name), [this, name] {
    emit told(QStringLiteral("%1 was cancelled; nothing is written").arg(name));
  });
  threads_.read([this, path, stop, run = run_](const QString& project) {
    const QString problem = writeReport(project, run, path, *stop);
    threads_.back([this, path, stop, problem] {
      if (!reads_.end(stop)) return;
      problem.isEmpty() ? emit reported(path) : emit failed(problem);
    });
  });
}

}  // namespace stepscope

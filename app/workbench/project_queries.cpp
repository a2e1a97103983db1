// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/project_queries.h"

#include <QTimer>
#include <algorithm>
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

QString modelOf(const SnapshotStore& store) {
  return store.model() ? QString::fromStdString(store.model()->path()) : QString();
}

}  // namespace

ProjectQueries::ProjectQueries(SnapshotStore& store, ProjectThreads& threads)
    : store_(store),
      threads_(threads),
      cancelSql_(std::make_shared<std::atomic<bool>>(false)),
      comparisons_(std::make_shared<std::atomic<int>>(0)),
      stepsAsked_(std::make_shared<std::atomic<int>>(0)) {
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
  if (!request.complete()) return;
  const int number = ++*comparisons_;
  threads_.read([this, request, number, newest = comparisons_, live = liveBefore()](const QString& path) {
    if (number != *newest) return;
    auto found = readComparison(path, request, live);
    QString error = found ? QString() : format::visible(found.error().message);
    const QString notes = found ? found->notes : QString();
    const bool alike = !found || found->alike;
    RunComparisonPtr result = found ? std::make_shared<const RunComparison>(std::move(found->comparison)) : nullptr;
    threads_.back([this, number, request, error, notes, alike, result] {
      if (number != *comparisons_) return;
      RunTimes::of(store_.project()).setNotes(request, notes, alike);
      store_.project().setRunComparison(result, error);
    });
  });
}

void ProjectQueries::listOtherRuns(const QString& path) {
  threads_.read([this, path](const QString&) {
    std::map<std::int64_t, RunStepTimes> times;
    auto runs = readRuns(path, &times);
    if (!runs) return threads_.back([this, text = runs.error().message] { emit failed(format::visible(text)); });
    threads_.back([this, path, runs = std::move(*runs), times = std::move(times)] {
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
  threads_.read([this, live = liveBefore()](const QString& path) {
    if (path.isEmpty()) return;
    std::map<std::int64_t, RunStepTimes> times;
    auto runs = readRuns(path, &times, live);
    if (!runs) return;
    threads_.back([this, runs = std::move(*runs), times = std::move(times)] {
      RunTimes::of(store_.project()).set(times);
      store_.project().setRuns(runs);
    });
  });
}

void ProjectQueries::showStep(std::int64_t step) {
  if (!ChosenStep::of(store_).choose(step)) return;
  const int number = ++*stepsAsked_;
  threads_.read([this, step, number, newest = stepsAsked_, run = run_](const QString& path) {
    if (number != *newest) return;  // another one is wanted by now
    PlanOfStep under;
    StepRanksPtr ranks;
    const auto read = [&]() -> storage::Result<StepPtr> {
      if (path.isEmpty()) return storage::fail(storage::ErrorCode::kNotFound, "nothing is recorded");
      SS_STORE_ASSIGN(const auto project, storage::Project::openReadOnly(path.toStdString()));
      return readStepRecord(project, run, step, under, ranks);
    };
    const auto found = read();
    const QString problem = found ? QString() : QString::fromStdString(found.error().message);
    threads_.back([this, step, number, record = found.value_or(nullptr), under, ranks, problem] {
      if (number != *stepsAsked_) return;
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
        threads_.back([this, answer = std::move(answer)]() mutable { store_.project().setSql(std::move(answer)); });
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
  threads_.read([this, path, run = run_](const QString& projectPath) {
    const auto tell = [this](const QString& text) { threads_.back([this, text] { emit failed(text); }); };
    const auto fail = [path, &tell](const std::string& why) {
      tell(QStringLiteral("report '%1': %2").arg(format::visible(path), format::visible(why)));
    };
    if (projectPath.isEmpty()) return fail("no run is recorded yet; expected a built model or an open project");
    auto project = storage::Project::openReadOnly(projectPath.toStdString());
    if (!project) return fail(project.error().message);
    if (path.endsWith(QStringLiteral(".pdf"), Qt::CaseInsensitive)) {
      const auto data = storage::readReportData(*project, run);
      if (!data) return fail(data.error().message);
      if (const QString why = print::printReport(storage::runDocument(*data), path); !why.isEmpty())
        return fail(why.toStdString());
    } else if (const auto status = storage::writeReport(*project, run, path.toStdString()); !status) {
      return tell(format::visible(status.error().message));  // it names the report, or the project
    }
    threads_.back([this, path] { emit reported(path); });
  });
}

}  // namespace stepscope

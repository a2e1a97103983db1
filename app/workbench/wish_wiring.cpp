// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/wish_wiring.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <utility>
#include <vector>

#include "app/workbench/actions.h"
#include "app/workbench/change_history.h"
#include "app/workbench/notice_bar.h"
#include "app/workbench/panel_board.h"
#include "app/workbench/questions.h"
#include "app/workbench/recording.h"
#include "app/workbench/session/model_session.h"
#include "app/workbench/status_line.h"
#include "views/common/format.h"

namespace stepscope {

WishWiring::WishWiring(const WindowParts& parts, FileQuestions& questions, ChangeHistory& history)
    : parts_(parts), questions_(questions), history_(history), sources_(parts.store.findings()) {
  connectSession();
  connectBreakpoints();
  connectArrays();
  connectProject();
  connectReports();
}

void WishWiring::connectSession() {
  Wishes& wishes = parts_.wishes;
  ModelSession& session = parts_.session;
  connect(&wishes, &Wishes::inspect, &session, &ModelSession::inspect);
  connect(&wishes, &Wishes::build, &session, &ModelSession::build);
  connect(&wishes, &Wishes::runTo, &session, &ModelSession::runTo);
  connect(&wishes, &Wishes::rewind, &session, &ModelSession::rewind);
  connect(&wishes, &Wishes::goToPlace, &session, &ModelSession::goTo);
  connect(&wishes, &Wishes::fetchTensor, &session, &ModelSession::fetchTensor);
  connect(&wishes, &Wishes::watch, &session, &ModelSession::watch);
  connect(&wishes, &Wishes::pin, &session, &ModelSession::pin);
  connect(&wishes, &Wishes::editTensor, &session, &ModelSession::editTensor);
  connect(&wishes, &Wishes::editElement, &session,
          [&session](int value, const std::vector<qint64>& index, double number, double before) {
            session.editElement(value, index, number, before);
          });
  connect(&wishes, &Wishes::determinism, &session, &ModelSession::determinism);
  connect(&wishes, &Wishes::compareBits, &session, &ModelSession::compareBits);
  connect(&wishes, &Wishes::setOption, &history_, &ChangeHistory::setOption);
  connect(&wishes, &Wishes::recompute, &session, &ModelSession::recompute);
  connect(&wishes, &Wishes::rowLosses, &session, &ModelSession::rowLosses);
  connect(&wishes, &Wishes::readSource, &sources_, &SourceReader::read);
  connect(&wishes, &Wishes::status, &parts_.status, &StatusLine::note);
  connect(&wishes, &Wishes::command, this, [this](const QString& id) {
    if (QAction* action = parts_.actions.find(id)) action->trigger();
  });
}

void WishWiring::connectBreakpoints() {
  const Wishes& wishes = parts_.wishes;
  connect(&wishes, &Wishes::toggleBreakpoint, &parts_.session, &ModelSession::toggleBreakpoint);
  connect(&wishes, &Wishes::addBreakpoint, this, [this](const snapshot::Breakpoint& b) {
    auto all = parts_.store.breakpoints();
    all.push_back(b);
    parts_.session.setBreakpoints(all);
  });
  connect(&wishes, &Wishes::removeBreakpoint, this, [this](int id) {
    auto all = parts_.store.breakpoints();
    std::erase_if(all, [id](const auto& b) { return b.id() == id; });
    parts_.session.setBreakpoints(all);
  });
  connect(&wishes, &Wishes::enableBreakpoint, this, [this](int id, bool enabled) {
    auto all = parts_.store.breakpoints();
    for (auto& b : all) {
      if (b.id() == id) b.set_enabled(enabled);
    }
    parts_.session.setBreakpoints(all);
  });
}

void WishWiring::connectArrays() {
  Wishes& wishes = parts_.wishes;
  ModelSession& session = parts_.session;
  const QString filter = QStringLiteral("NumPy array (*.npy)");
  connect(&wishes, &Wishes::saveTensor, this, [this, filter, &session](int value) {
    questions_.askToSave(QStringLiteral("Save tensor"), QStringLiteral("tensor.npy"), filter,
                         [&session, value](const QString& path) { session.saveTensor(value, path); });
  });
  connect(&wishes, &Wishes::loadTensor, this, [this, filter, &session](int value, const QString& path) {
    const auto load = [&session, value](const QString& file) { session.loadTensor(value, file); };
    if (!path.isEmpty()) return load(path);
    questions_.askExisting(QStringLiteral("Load contents"), filter, load);
  });
  connect(&wishes, &Wishes::compareWithFile, this, [this, filter, &session](int value, const QString& path) {
    const auto compare = [&session, value](const QString& file) { session.compareWithFile(value, file); };
    if (!path.isEmpty()) return compare(path);
    questions_.askExisting(QStringLiteral("Compare with an array"), filter, compare);
  });
  connect(&wishes, &Wishes::compareWithValue, &session, &ModelSession::compareWithValue);
  connect(&wishes, &Wishes::keepTensor, &session, &ModelSession::keepTensor);
  connect(parts_.actions[QStringLiteral("save_state")], &QAction::triggered, this, [this, &session] {
    questions_.askToSave(QStringLiteral("Save parameters"), QStringLiteral("state.safetensors"),
                         QStringLiteral("Safetensors (*.safetensors)"),
                         [&session](const QString& path) { session.saveState(path); });
  });
}

void WishWiring::connectProject() {
  Wishes& wishes = parts_.wishes;
  ProjectQueries& queries = parts_.recording.queries();
  connect(&wishes, &Wishes::stageGraph, this, [this](const QString& stage) {
    if (parts_.store.readOnly()) {
      parts_.recording.readStage(stage);
    } else {
      parts_.session.stageGraph(stage);
    }
  });
  connect(&wishes, &Wishes::sql, this, [this](const QString& query) {
    parts_.board.show(QStringLiteral("sql"));
    parts_.store.project().setSqlText(query);
    parts_.recording.queries().runSql(query);
  });
  connect(&wishes, &Wishes::runSql, &queries, &ProjectQueries::runSql);
  connect(&wishes, &Wishes::cancelSql, &queries, &ProjectQueries::cancelSql);
  connect(&wishes, &Wishes::compareRuns, &queries, &ProjectQueries::compare);
  connect(&wishes, &Wishes::showStep, this, [this, &queries](qint64 step) {
    parts_.selection.setRange(0, 0);  // a time within other steps
    queries.showStep(step);
  });
  connect(&wishes, &Wishes::openOtherProject, this, [this] {
    questions_.askToOpen(QStringLiteral("Compare with a run of another project"), {},
                         QStringLiteral("Projects (*.stepscope)"),
                         [this](const QString& path) { parts_.recording.queries().listOtherRuns(path); });
  });
  connect(&wishes, &Wishes::openRun, this, [this](qint64 run) {
    if (parts_.store.readOnly()) {
      parts_.recording.open(parts_.store.project().projectPath(), run);
    } else {
      parts_.status.note(QStringLiteral("Open the project file to look at an earlier run"));
    }
  });
}

// The command says what is written, whatever the name that was typed ends with.
void WishWiring::saveReport(QString path, const QString& suffix) {
  if (!path.endsWith(suffix, Qt::CaseInsensitive)) {
    const QString last = QLatin1Char('.') + suffix.section('.', -1);  // trace.json is x.trace.json
    if (path.endsWith(last, Qt::CaseInsensitive)) path.chop(last.size());
    path += suffix;
    if (QFileInfo::exists(path)) {
      parts_.status.note(QStringLiteral("%1 exists: choose that name, or another").arg(format::visible(path)));
      return;
    }
  }
  parts_.recording.queries().report(path);
}

// What the model is called: most are a model.onnx in a folder of their name. The first dot begins the ending.
QString WishWiring::reportName() const {
  const QString path = parts_.session.modelPath();
  const QFileInfo model(path.isEmpty() ? parts_.store.project().projectPath() : path);
  const QString base = model.completeBaseName();
  QString name = base == u"model" ? model.dir().dirName() : base;
  name.replace('.', '_');
  return name.isEmpty() ? QStringLiteral("report") : name;
}

void WishWiring::connectReports() {
  for (const auto& [id, ending] :
       {std::pair("report_html", ".html"), std::pair("report_pdf", ".pdf"), std::pair("report_json", ".json"),
        std::pair("report_csv", ".csv"), std::pair("report_trace", ".trace.json")}) {
    connect(parts_.actions[QLatin1String(id)], &QAction::triggered, this, [this, suffix = QString::fromLatin1(ending)] {
      questions_.askToSave(QStringLiteral("Report"), reportName() + suffix, QStringLiteral("Report (*%1)").arg(suffix),
                           [this, suffix](const QString& path) { saveReport(path, suffix); });
    });
  }
  connect(parts_.actions[QStringLiteral("import_pytorch")], &QAction::triggered, this, [this] {
    questions_.askToOpen(QStringLiteral("Trace of torch.profiler"), {}, QStringLiteral("Chrome traces (*.json)"),
                         [this](const QString& path) { parts_.recording.queries().importTrace(path); });
  });
  connect(&parts_.recording.queries(), &ProjectQueries::imported, this, [this](const QString& text) {
    parts_.actions[QStringLiteral("view_hot_ops")]->trigger();
    parts_.status.note(text);
  });
  connect(&parts_.wishes, &Wishes::exportTable, this, [this](const QString& name, const QString& csv) {
    const bool json = name.endsWith(QStringLiteral(".json"));
    questions_.askToSave(json ? QStringLiteral("Save") : QStringLiteral("Export table"), name,
                         json ? QStringLiteral("JSON (*.json)") : QStringLiteral("Comma separated (*.csv)"),
                         [this, csv](const QString& path) { saveTable(path, csv); });
  });
  // The contents, not the name: the worker may be on another machine.
  connect(parts_.actions[QStringLiteral("load_streams")], &QAction::triggered, this, [this] {
    questions_.askToOpen(QStringLiteral("Streams"), {}, QStringLiteral("JSON (*.json)"), [this](const QString& path) {
      QFile file(path);
      if (file.open(QIODevice::ReadOnly))
        history_.setOption(QStringLiteral("streams.partition"), QString::fromUtf8(file.readAll()).simplified());
      else
        parts_.notice.showProblem(QStringLiteral("streams '%1': %2").arg(format::visible(path), file.errorString()), {}, {});
    });
  });
}

void WishWiring::saveTable(const QString& path, const QString& csv) {
  QFile file(path);
  if (!file.open(QIODevice::WriteOnly) || file.write(csv.toUtf8()) < 0 || !file.flush())
    parts_.notice.showProblem(QStringLiteral("table '%1': %2").arg(format::visible(path), file.errorString()), {}, {});
}

}  // namespace stepscope

// SPDX-License-Identifier: GPL-3.0-or-later
// What the window knows besides the open model: recent files, samples, the runs of the project and two of them compared with
// each other, the last SQL answer. Written by the workbench, read by views. GUI thread only.
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <cstdint>
#include <vector>

#include "views/common/run_comparison.h"

namespace stepscope {

struct FileEntry {
  QString path;
  QString detail;  // "3 runs, yesterday" …
  bool sample = false;
  QString recording = {};  // the project that the window keeps of this model; empty: none is listed with it
};

struct SqlAnswer {
  QString query;
  QString error;  // empty: it worked
  QStringList columns;
  std::vector<QStringList> rows;
  std::vector<bool> numeric;  // per column
  bool truncated = false;
  std::int64_t ns = 0;
};

struct SqlTable {
  QString name, doc;
  std::vector<std::pair<QString, QString>> columns;  // name, documentation
};

class ProjectFacts : public QObject {
  Q_OBJECT

 public:
  explicit ProjectFacts(QObject* parent = nullptr) : QObject(parent) {}

  const std::vector<FileEntry>& files() const { return files_; }  // recent first, then samples
  const std::vector<RunEntry>& runs() const { return runs_; }
  const SqlAnswer& sql() const { return sql_; }
  bool sqlRunning() const { return sqlRunning_; }
  const std::vector<SqlTable>& tables() const { return tables_; }
  const QString& projectPath() const { return projectPath_; }  // empty: nothing is recorded
  // Why its runs cannot be named or deleted, as far as it was known when the project was opened; empty: they can be.
  const QString& whyNotWritable() const { return whyNotWritable_; }
  const QString& sqlText() const { return sqlText_; }  // put into the editor by another view

  // Two runs compared. `compareRequest` is what was asked for last; the answer may still be that of the one before.
  const CompareRequest& compareRequest() const { return compareRequest_; }
  bool comparing() const { return comparing_; }
  const RunComparisonPtr& runComparison() const { return runComparison_; }  // nullptr: none yet, or it failed
  const QString& compareError() const { return compareError_; }             // why it failed
  const QString& otherProject() const { return otherProject_; }             // file whose runs may stand as B
  const std::vector<RunEntry>& otherRuns() const { return otherRuns_; }
  const StartupHistory& startupHistory() const { return startupHistory_; }

  void setFiles(std::vector<FileEntry> files) {
    files_ = std::move(files);
    emit filesChanged();
  }
  void setRuns(std::vector<RunEntry> runs) {
    runs_ = std::move(runs);
    emit runsChanged();
  }
  void setSqlRunning(bool running) {
    sqlRunning_ = running;
    emit sqlChanged();
  }
  void setSql(SqlAnswer answer) {
    sql_ = std::move(answer);
    sqlRunning_ = false;
    emit sqlChanged();
  }
  void setTables(std::vector<SqlTable> tables) {
    tables_ = std::move(tables);
    emit sqlChanged();
  }
  void setProjectPath(const QString& path) {
    projectPath_ = path;
    emit projectChanged();
  }
  void setWhyNotWritable(const QString& why) { whyNotWritable_ = why; }  // before the runs of the project
  void setCompareRequest(const CompareRequest& request) {
    compareRequest_ = request;
    comparing_ = request.complete();
    emit comparisonChanged();
  }
  void setRunComparison(RunComparisonPtr comparison, const QString& error) {
    runComparison_ = std::move(comparison);
    compareError_ = error;
    comparing_ = false;
    emit comparisonChanged();
  }
  void setOtherRuns(const QString& project, std::vector<RunEntry> runs) {
    otherProject_ = project;
    otherRuns_ = std::move(runs);
    emit runsChanged();
  }
  // Another project is open: its runs are others.
  void clearComparison() {
    compareRequest_ = {};
    setOtherRuns({}, {});
    setRunComparison(nullptr, {});
  }
  void setStartupHistory(StartupHistory history) {
    startupHistory_ = std::move(history);
    emit startupHistoryChanged();
  }
  void setSqlText(const QString& text) {
    sqlText_ = text;
    emit sqlTextChanged();
  }

 signals:
  void filesChanged();
  void runsChanged();
  void sqlChanged();
  void projectChanged();
  void sqlTextChanged();
  void comparisonChanged();
  void startupHistoryChanged();

 private:
  std::vector<FileEntry> files_;
  std::vector<RunEntry> runs_;
  SqlAnswer sql_;
  bool sqlRunning_ = false;
  std::vector<SqlTable> tables_;
  QString projectPath_, whyNotWritable_;
  QString sqlText_;
  CompareRequest compareRequest_;
  bool comparing_ = false;
  RunComparisonPtr runComparison_;
  QString compareError_;
  QString otherProject_;
  std::vector<RunEntry> otherRuns_;
  StartupHistory startupHistory_;
};

}  // namespace stepscope

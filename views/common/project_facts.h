// SPDX-License-Identifier: GPL-3.0-or-later
// What the window knows besides the open model: recent files, samples, the runs of the project, the last SQL answer.
// Written by the workbench, read by views. GUI thread only.
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <cstdint>
#include <vector>

namespace stepscope {

struct FileEntry {
  QString path;
  QString detail;     // "3 runs, yesterday" …
  bool sample = false;
};

struct RunEntry {
  std::int64_t id = 0;
  QString name, status, device, optimizer;
  std::int64_t startedAt = 0;  // nanoseconds since 1970
  std::int64_t steps = 0, totalNs = 0;
  bool hasLoss = false;
  double firstLoss = 0, lastLoss = 0;
};

struct SqlAnswer {
  QString query;
  QString error;                        // empty: it worked
  QStringList columns;
  std::vector<QStringList> rows;
  std::vector<bool> numeric;            // per column
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

  const std::vector<FileEntry>& files() const { return files_; }       // recent first, then samples
  const std::vector<RunEntry>& runs() const { return runs_; }
  const SqlAnswer& sql() const { return sql_; }
  bool sqlRunning() const { return sqlRunning_; }
  const std::vector<SqlTable>& tables() const { return tables_; }
  const QString& projectPath() const { return projectPath_; }          // empty: nothing is recorded
  const QString& sqlText() const { return sqlText_; }                  // put into the editor by another view

  void setFiles(std::vector<FileEntry> files) { files_ = std::move(files); emit filesChanged(); }
  void setRuns(std::vector<RunEntry> runs) { runs_ = std::move(runs); emit runsChanged(); }
  void setSqlRunning(bool running) { sqlRunning_ = running; emit sqlChanged(); }
  void setSql(SqlAnswer answer) { sql_ = std::move(answer); sqlRunning_ = false; emit sqlChanged(); }
  void setTables(std::vector<SqlTable> tables) { tables_ = std::move(tables); emit sqlChanged(); }
  void setProjectPath(const QString& path) { projectPath_ = path; emit projectChanged(); }
  void setSqlText(const QString& text) { sqlText_ = text; emit sqlTextChanged(); }

 signals:
  void filesChanged();
  void runsChanged();
  void sqlChanged();
  void projectChanged();
  void sqlTextChanged();

 private:
  std::vector<FileEntry> files_;
  std::vector<RunEntry> runs_;
  SqlAnswer sql_;
  bool sqlRunning_ = false;
  std::vector<SqlTable> tables_;
  QString projectPath_;
  QString sqlText_;
};

}  // namespace stepscope

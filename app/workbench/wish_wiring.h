// SPDX-License-Identifier: GPL-3.0-or-later
// Connects what views wish with who does it: the session, the project file, files that are asked for. GUI thread.
#pragma once

#include <QObject>

#include "app/workbench/source_reader.h"
#include "app/workbench/window_parts.h"

namespace stepscope {

class ChangeHistory;
class FileQuestions;

class WishWiring : public QObject {
  Q_OBJECT

 public:
  WishWiring(const WindowParts& parts, FileQuestions& questions, ChangeHistory& history);

 private:
  void connectSession();
  void connectBreakpoints();
  void connectArrays();  // .npy files: load, save, compare
  void connectProject();
  void connectReports();
  QString reportName() const;  // that is offered, without its ending
  void saveReport(QString path, const QString& suffix);
  void saveTable(const QString& path, const QString& csv);

  WindowParts parts_;
  FileQuestions& questions_;
  ChangeHistory& history_;
  SourceReader sources_;
};

}  // namespace stepscope

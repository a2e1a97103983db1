// SPDX-License-Identifier: GPL-3.0-or-later
// Dims what a view shows of the project while the same is read again, and says so on it.
#pragma once

#include <QWidget>
#include <functional>

#include "views/common/project_reads.h"

namespace stepscope {

class ReadingVeil : public QWidget {
 public:
  // Over `shown`, as long as it is read and `text`, asked then, says of what there is something to dim; mouse and keys go
  // through.
  ReadingVeil(QWidget* shown, const ProjectReads& reads, ProjectReads::What what, std::function<QString()> text);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  void follow();

  const ProjectReads& reads_;
  ProjectReads::What what_;
  std::function<QString()> text_;
  QString said_;
};

}  // namespace stepscope

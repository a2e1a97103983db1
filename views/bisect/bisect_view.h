// SPDX-License-Identifier: GPL-3.0-or-later
// Which options, and which nodes, make the present step compute other numbers than with every optimisation off: looked for
// with a button here, or beside a proof that failed.
#pragma once

#include "engine/snapshot/lab.pb.h"
#include "views/common/study_bar.h"
#include "views/common/view.h"

namespace stepscope {

class Details;

class BisectView : public View {
  Q_OBJECT

 public:
  explicit BisectView(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;

 private:
  void follow();
  void showFinding(const snapshot::BisectFinding& finding);
  QStringList changedSince() const;  // options that are others now than when the finding was made

  StudyBar* bar_;
  Details* page_;
};

}  // namespace stepscope

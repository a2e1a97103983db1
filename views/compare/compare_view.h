// SPDX-License-Identifier: GPL-3.0-or-later
// Two runs of the project compared: which they are, whether they agree, and pages with what parts them.
#pragma once

#include <QComboBox>
#include <QGridLayout>
#include <QLabel>
#include <QPushButton>
#include <QToolButton>

#include "views/common/row_table.h"
#include "views/compare/compare_pages.h"
#include "views/compare/runs_page.h"

namespace stepscope {

class CompareView : public View {
  Q_OBJECT

 public:
  explicit CompareView(const ViewContext& context, QWidget* parent = nullptr);
  QString headerText() const override;
  QWidget* headerWidget() override { return controls_; }
  QString emptyText() const override;
  void find() override { pages_->front()->find(); }
  void fitAll() override { pages_->front()->fitAll(); }
  QString saveState() const override { return pages_->front()->objectName(); }
  void restoreState(const QString& state) override { pages_->show(state); }

  // Brings a page to the front: "compare_both", "compare_settings", "compare_numbers", "compare_operators",
  // "compare_phases", "compare_build", "compare_memory".
  void showPage(const QString& id) { pages_->show(id); }

 protected:
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void placePair(bool stacked);
  void fillRuns();  // the lists, and the pair when nobody has picked one
  void pick();      // what the lists say
  void ask(const CompareRequest& request);
  void showResult();
  void followReading();
  QString readingText() const;  // over the comparison before; empty: there is none

  QWidget* controls_;
  QToolButton* logarithmic_;
  QPushButton *other_, *cancel_;
  QComboBox *a_, *b_;
  QLabel *letterA_, *letterB_;
  QToolButton* swap_;
  QGridLayout* pair_;
  QLabel* note_;  // why times say little, and why bits may differ
  ComparePages* pages_;
  CompareRequest proposed_;  // the pair that the view chose by itself
};

}  // namespace stepscope

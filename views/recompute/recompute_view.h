// SPDX-License-Identifier: GPL-3.0-or-later
// What may be computed again instead of kept: patterns to tick, a budget to slide, the plan as text; what that would save
// and cost, and what the runs of this session measured. Apply sets the options recompute.plan and recompute.budget.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QSlider>
#include <QSplitter>
#include <QTimer>

#include "views/common/study_bar.h"
#include "views/common/view.h"

namespace stepscope {

class ParetoPlot;
class PatternModel;
class RowTableView;

class RecomputeView : public View {
  Q_OBJECT

 public:
  explicit RecomputeView(const ViewContext& context, QWidget* parent = nullptr);

  QString headerText() const override;
  QWidget* headerWidget() override { return bar_->button(); }
  QString emptyText() const override;

 protected:
  void showEvent(QShowEvent* event) override;
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  QString tableText() const;  // stands in the table while it has no rows
  QWidget* makeTable();
  QWidget* makeControls();
  void takeReport();   // a report arrived
  void takeOptions();  // what is applied became other: the choice follows it
  void chooseBudget(qint64 bytes);
  void choiceChanged();  // plan text or budget
  void ask();            // what the choice would give
  void askAll();         // the report anew, when it may have changed and the view is seen
  void setProblem(const QString& problem);
  void followStudy();
  void showChoice();
  void showPrediction();
  void apply();
  void colourBoxes();
  void fitHeight();
  bool isApplied() const;          // the choice is what the options say
  std::int64_t leastPeak() const;  // that recompute can reach; 0: not known
  bool missesBudget() const;       // the plan that runs needs more than its budget
  QString option(const char* name) const;

  PatternModel* model_;
  RowTableView* table_;
  ParetoPlot* plot_;
  QSplitter* split_;
  QScrollArea* scroll_ = nullptr;  // around the table and the controls
  QSlider* slider_;
  QLineEdit* budgetText_;  // a size, typed or as the slider says
  QLabel* prediction_;
  StudyBar* bar_;
  QLabel *proof_, *kept_;
  QLineEdit* plan_;
  QPushButton *copy_, *reset_, *apply_;
  QTimer askLater_;  // a slider that moves asks once, when it rests
  QTimer refreshLater_;
  qint64 budget_ = 0;  // 0: none
  QString problem_;    // of the choice that stands here, hostile text
  QString appliedPlan_;
  qint64 appliedBudget_ = 0;
  bool stale_ = true;  // the plan or its times changed since the report was asked for
  bool filling_ = false;
};

}  // namespace stepscope

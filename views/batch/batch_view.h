// SPDX-License-Identifier: GPL-3.0-or-later
// The data of a step, the present one or the recorded one that the window shows, as people think of it: every input with its
// meaning and range; samples, lengths and densities as gauges over the steps, and what the build made of them; tokens with
// their mask, images as pictures; the row that did worst.
#pragma once

#include <QComboBox>
#include <QSplitter>
#include <QStackedWidget>
#include <QTabBar>

#include "views/batch/batch_source.h"
#include "views/batch/contents_page.h"
#include "views/batch/density_page.h"
#include "views/batch/worst_page.h"
#include "views/common/table_panel.h"

namespace stepscope {

class BatchView : public TablePanel {
  Q_OBJECT

 public:
  enum Page { kDensity, kContents, kWorst };

  explicit BatchView(const ViewContext& context, QWidget* parent = nullptr);
  QString headerText() const override;
  QString emptyText() const override;
  void openPage(Page page) { tabs_->setCurrentIndex(page); }

 protected:
  void refill() override;
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void makePages();
  void another();  // batch, or graph
  void fetch();
  void showPage(int page);
  void fillSteps();
  // The batch of the step that the window shows (ChosenStep); of none: the present one, in a project without a worker the
  // newest that was recorded. True when it is another one than before.
  bool pick(const std::vector<StepPtr>& recorded);

  BatchSource source_;
  QComboBox* steps_;
  QSplitter* splitter_;
  QTabBar* tabs_;
  QStackedWidget* pages_;
  DensityPage* density_;
  ContentsPage* contents_;
  WorstPage* worst_;
  bool fetched_ = false;
  std::int64_t fetchedStep_ = -2;
};

}  // namespace stepscope

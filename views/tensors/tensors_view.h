// SPDX-License-Identifier: GPL-3.0-or-later
// The selected value: what it is, its statistics and histogram, its elements as a table or a heat map, and how it differs
// from a file, another value, or contents that were kept. When its memory was given to another value, it says to whom and
// when. Where the run stopped at a number that is not finite, the elements open at the first one.
#pragma once

#include <QComboBox>
#include <QToolButton>

#include "views/common/view.h"
#include "views/tensors/elements_panel.h"
#include "views/tensors/statistics_panel.h"
#include "views/tensors/value_facts.h"

namespace stepscope {

class TensorsView : public View {
  Q_OBJECT

 public:
  explicit TensorsView(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;
  void find() override { elements_->findSlice(); }

 protected:
  void showEvent(QShowEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;  // a .npy file is compared with

 private:
  void followSelection();
  void fillOperands();
  void showValue(int value);
  void fetch();
  void refresh();
  void openAtNotFinite();
  void openMenu();
  std::vector<std::int64_t> dims() const;  // of the shown value; empty when they are not known

  QComboBox* operands_;
  QToolButton* more_;
  ValueFacts* facts_;
  StatisticsPanel* statistics_;
  ElementsPanel* elements_;
  struct OpenedAt {
    std::int64_t step = -1;
    int instruction = -1, value = -1;
    friend bool operator==(const OpenedAt&, const OpenedAt&) = default;
  };
  OpenedAt openedAt_;  // the newest stop whose element that is not finite was shown
  int value_ = -1;
  bool stale_ = true;
  bool asked_ = false;  // for the slice that is looked at
};

}  // namespace stepscope

// SPDX-License-Identifier: GPL-3.0-or-later
// The lines between the areas of the window: where a layout wants them, and where a person dragged them. The right column
// has no room while a panel leaves too little of it for three.
#pragma once

#include <QWidget>
#include <array>

#include "app/workbench/layouts.h"

class QSplitter;

namespace stepscope {

class PanelSplits : public QWidget {
  Q_OBJECT

 public:
  explicit PanelSplits(const std::array<QWidget*, kAreaCount>& areas, QWidget* parent = nullptr);

  // As the layout has them; what was dragged before is forgotten.
  void apply(const ViewLayout& layout);
  // The shares of the layout that stands there now.
  void tell(ViewLayout& layout) const;
  // The centre goes with the last of the two areas that it holds.
  void hideEmptyCentre(bool empty);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void applyAll();
  void applyColumns();
  void keepColumns();

  QSplitter* columns_;
  QSplitter* middle_;  // the centre above the bottom
  QSplitter* centre_;
  double left_ = 0, right_ = 0, bottom_ = 0, middleShare_ = 0.5;  // shares, as ViewLayout has them
  int leftWidth_ = 0, rightWidth_ = 0;  // of the columns as the user dragged them; 0: as the layout has them
  bool sized_ = false;
};

}  // namespace stepscope

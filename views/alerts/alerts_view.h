// SPDX-License-Identifier: GPL-3.0-or-later
// NaN, infinities, lost records, aliases … each with a link to the first place.
#pragma once

#include <QToolButton>

#include "views/common/table_panel.h"

namespace stepscope {

class AlertsView : public TablePanel {
  Q_OBJECT

 public:
  explicit AlertsView(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;
  QWidget* headerWidget() override { return go_; }

 protected:
  void refill() override;
  void activated(int row) override;
  void fillMenu(QMenu& menu, int row) override;

 private:
  const snapshot::Alert* alertOf(int row) const;
  bool canGo(int row) const;  // there is a step to go back to
  void updateGo();

  QToolButton* go_;
};

}  // namespace stepscope

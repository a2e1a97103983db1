// SPDX-License-Identifier: GPL-3.0-or-later
// A captured model next to what PyTorch computed of it: every tensor that was compared, what differs first.
#pragma once

#include <QCheckBox>
#include <QLabel>
#include <QPushButton>

#include "views/common/table_panel.h"

namespace stepscope {

class CaptureView : public TablePanel {
  Q_OBJECT

 public:
  explicit CaptureView(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;

 protected:
  void refill() override;

 private:
  void follow();

  QLabel *summary_, *notes_, *problem_;
  QCheckBox* always_;
  QPushButton* compare_;
};

}  // namespace stepscope

// SPDX-License-Identifier: GPL-3.0-or-later
// Every option of the build, in groups: value, default, who set it, what it changed, what it saves by the roofline, and what
// a trial measured of it; switches act at the next step boundary. A button leaves only those that differ from their default.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QToolButton>

#include "views/common/table_panel.h"

namespace stepscope {

class OptionsView : public TablePanel {
  Q_OBJECT

 public:
  explicit OptionsView(const ViewContext& context, QWidget* parent = nullptr);
  QString emptyText() const override;
  QWidget* headerWidget() override { return changed_; }

 protected:
  void refill() override;
  void activated(int row) override;
  void fillMenu(QMenu& menu, int row) override;

 private:
  const snapshot::Option* option(int row) const;
  void choose(qint64 key);
  void showChosen();

  QLabel* name_;
  QLabel* doc_;
  QLabel* proof_;       // of the last change
  QPushButton* cause_;  // of what it says that differs
  QComboBox* value_;
  QPushButton* reset_;
  QToolButton* changed_;
  bool filling_ = false;
};

}  // namespace stepscope

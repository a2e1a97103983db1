// SPDX-License-Identifier: GPL-3.0-or-later
// Every record of the worker and of the window, with the node, value or instruction that it names. Rules hide records and
// say how many; nothing is dropped before 100,000 lines.
#pragma once

#include "views/common/table_panel.h"
#include "views/log/log_links.h"
#include "views/log/log_rules.h"

class QHBoxLayout;

namespace stepscope {

class LogView : public TablePanel {
  Q_OBJECT

 public:
  explicit LogView(const ViewContext& context, QWidget* parent = nullptr);
  QString headerText() const override;
  QString emptyText() const override;
  QString saveState() const override;  // filter and rules
  void restoreState(const QString& state) override;

  void addRule(const QString& rule);
  void removeRule(const QString& rule);
  // "12 hidden by level:debug", one per rule, in their order.
  QStringList hiddenTexts() const;

 protected:
  void refill() override;
  void fillMenu(QMenu& menu, int row) override;

 private:
  void fillRules();

  LogRules rules_;
  std::vector<std::int64_t> hidden_;  // records by rule
  QLineEdit* rule_;
  QHBoxLayout* chips_;
  LogLinks links_;
  std::vector<Selection> places_;  // of the records from first_ on: looked up once
  std::int64_t first_ = 0;         // records before it were dropped
};

}  // namespace stepscope

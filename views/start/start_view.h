// SPDX-License-Identifier: GPL-3.0-or-later
// The first page: open something, continue with something, see what this machine has. After a model was read: its set-up.
#pragma once

#include <QBoxLayout>
#include <QLabel>
#include <QListWidget>
#include <QStackedWidget>

#include "views/common/details.h"
#include "views/common/view.h"

namespace stepscope {

class StartView : public View {
  Q_OBJECT

 public:
  explicit StartView(const ViewContext& context, QWidget* parent = nullptr);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void stack(bool stacked);
  void fillFiles();
  void showMenu(const QListWidget& list, const QPoint& at);
  void fillMachine();

  QBoxLayout* columns_ = nullptr;
  QWidget* drop_ = nullptr;
  QListWidget* recent_;
  QListWidget* samples_;
  QWidget* samplesTitle_;
  QLabel* noRecent_;
  QWidget* samplesGap_;
  QLabel* machineTitle_;
  Details* machine_;
};

}  // namespace stepscope

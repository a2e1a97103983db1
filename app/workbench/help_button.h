// SPDX-License-Identifier: GPL-3.0-or-later
// The small question mark at the right end of a panel's header: the page of the guide about the view in front.
#pragma once

#include <QToolButton>

namespace stepscope {

class HelpButton : public QToolButton {
  Q_OBJECT

 public:
  explicit HelpButton(QWidget* parent = nullptr);
  // Of the view with this title; empty: of none.
  void setView(const QString& title);
};

}  // namespace stepscope

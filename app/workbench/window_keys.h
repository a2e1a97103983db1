// SPDX-License-Identifier: GPL-3.0-or-later
// Keys whose meaning depends on what has the keyboard: who presses one means the window, or what has it. A filter of the
// application's events; the window installs it.
#pragma once

#include <QObject>

#include "app/workbench/window_parts.h"

class QKeyEvent;

namespace stepscope {

class WindowKeys : public QObject {
  Q_OBJECT

 public:
  explicit WindowKeys(const WindowParts& parts) : parts_(parts) {}

  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  bool endsBuild(const QWidget& focus, const QKeyEvent& key) const;
  bool exportsView(const QWidget& focus, const QKeyEvent& key) const;

  const WindowParts parts_;
};

}  // namespace stepscope

// SPDX-License-Identifier: GPL-3.0-or-later
// Asks on which machine the worker is to run, and where stepscope is there.
#pragma once

#include <QDialog>

#include "app/workbench/remote_host.h"

class QComboBox;
class QLabel;
class QLineEdit;

namespace stepscope {

class ConnectDialog : public QDialog {
  Q_OBJECT

 public:
  // `known`: hosts that were worked with, the newest first; `now` is the one of this window.
  ConnectDialog(const QList<RemoteHost>& known, const RemoteHost& now, QWidget* parent);

 signals:
  void wanted(const stepscope::RemoteHost& host);  // an empty one: this machine

 private:
  void ask();

  QComboBox* host_;
  QLineEdit* program_;
  QLabel* problem_;
};

}  // namespace stepscope

// SPDX-License-Identifier: GPL-3.0-or-later
// Source files as lines, read on a thread of their own.
#pragma once

#include <QObject>
#include <QThreadPool>

#include "views/common/findings.h"

namespace stepscope {

class SourceReader : public QObject {
  Q_OBJECT

 public:
  explicit SourceReader(Findings& findings, QObject* parent = nullptr) : QObject(parent), findings_(findings) {
    pool_.setMaxThreadCount(1);
  }

  // A regular file of at most 4 MiB of text; whatever it is, an answer stands in the findings.
  void read(const QString& path);

 private:
  Findings& findings_;
  QThreadPool pool_;  // waits for its thread before it goes
};

}  // namespace stepscope

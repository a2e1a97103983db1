// SPDX-License-Identifier: GPL-3.0-or-later
// Values as they are: their contents, next to files, other values and kept contents; what each row adds to the loss.
#pragma once

#include <functional>

#include "app/workbench/session/session_link.h"

namespace stepscope {

class SessionInspector : public SessionPart {
  Q_OBJECT

 public:
  explicit SessionInspector(const SessionParts& parts) : SessionPart(parts) {}

  void fetchTensor(int value, const std::vector<qint64>& begin, const std::vector<qint64>& extent);
  // The answer stands in the findings.
  void compareWithFile(int value, const QString& path);
  void compareWithValue(int value, int other);
  void keepTensor(int value);
  void rowLosses();
  void saveTensor(int value, const QString& path);
  void saveState(const QString& path);
  void saveState(const QString& path, std::function<void(bool saved)> then);  // and says nothing

 private:
  void compare(snapshot::Request request, const QString& with);

  int kept_ = 0;
};

}  // namespace stepscope

// SPDX-License-Identifier: GPL-3.0-or-later
// What of the log is hidden, and by which rule. Nothing is dropped.
#pragma once

#include <QString>
#include <QStringList>
#include <optional>

#include "views/common/snapshot_store.h"

namespace stepscope {

// A rule is "level:NAME" (records of that level) or any text (records that hold it, whatever the case).
class LogRules {
 public:
  const QStringList& rules() const { return rules_; }
  // Nothing happens to a rule that is there already, is blank, or would be one too many.
  void add(const QString& rule);
  void remove(const QString& rule) { rules_.removeAll(rule); }
  // Index of the first rule that hides the record.
  std::optional<qsizetype> hiddenBy(const LogLine& line) const;

  QString text() const { return rules_.join('\n'); }
  static LogRules fromText(const QString& text);

 private:
  QStringList rules_;
};

}  // namespace stepscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/log/log_rules.h"

namespace stepscope {
namespace {
constexpr qsizetype kMostRules = 20, kLongestRule = 200;
const QString kLevel = QStringLiteral("level:");
}  // namespace

void LogRules::add(const QString& rule) {
  QString trimmed = rule;  // one line: rules are kept as lines
  trimmed = trimmed.replace('\n', ' ').trimmed().left(kLongestRule);
  if (trimmed.isEmpty() || trimmed == kLevel || rules_.contains(trimmed) || rules_.size() >= kMostRules) return;
  rules_ << trimmed;
}

std::optional<qsizetype> LogRules::hiddenBy(const LogLine& line) const {
  for (qsizetype i = 0; i < rules_.size(); ++i) {
    const QString& rule = rules_[i];
    const bool hides = rule.startsWith(kLevel)
                           ? line.level.compare(rule.mid(kLevel.size()).trimmed(), Qt::CaseInsensitive) == 0
                           : line.text.contains(rule, Qt::CaseInsensitive);
    if (hides) return i;
  }
  return std::nullopt;
}

LogRules LogRules::fromText(const QString& text) {
  LogRules rules;
  for (const QString& rule : text.split('\n')) rules.add(rule);
  return rules;
}

}  // namespace stepscope

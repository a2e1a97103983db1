// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/conditions.h"

#include <algorithm>

namespace stepscope::conditions {
namespace {

// A name may hold blanks, so the other three words are counted from the end.
std::string nameIn(const std::string& condition) {
  std::size_t end = condition.size();
  for (int word = 0; word < 3; ++word) {
    end = condition.find_last_not_of(' ', end == 0 ? 0 : end - 1);
    if (end == std::string::npos) return {};
    end = condition.rfind(' ', end);
    if (end == std::string::npos || end == 0) return {};
  }
  const std::size_t last = condition.find_last_not_of(' ', end - 1), first = condition.find_first_not_of(' ');
  return last == std::string::npos || last < first ? std::string() : condition.substr(first, last - first + 1);
}

bool isValue(const QString& name, const GraphSnapshot& graph) {
  const std::string wanted = name.toStdString();
  const auto& values = graph.graph().values();
  return !wanted.empty() && std::any_of(values.begin(), values.end(), [&](const auto& v) { return v.name() == wanted; });
}

QStringList followedBy(const QString& before, const QStringList& words, const QString& begun) {
  QStringList lines;
  for (const QString& word : words)
    if (word.startsWith(begun, Qt::CaseInsensitive)) lines << before + ' ' + word + ' ';
  return lines;
}

}  // namespace

const QStringList& fields() {
  static const QStringList all = {QStringLiteral("max"), QStringLiteral("min"),  QStringLiteral("mean"),
                                  QStringLiteral("std"), QStringLiteral("norm"), QStringLiteral("zeros"),
                                  QStringLiteral("nan"), QStringLiteral("inf"),  QStringLiteral("value")};
  return all;
}

const QStringList& comparisons() {
  static const QStringList all = {QStringLiteral(">"),  QStringLiteral(">="), QStringLiteral("<"),
                                  QStringLiteral("<="), QStringLiteral("=="), QStringLiteral("!=")};
  return all;
}

int valueMade(const std::string& condition, const snapshot::Instruction& instruction, const GraphSnapshot& graph) {
  const std::string name = nameIn(condition);
  const auto isNamed = [&](int id) {
    const auto* value = graph.value(id);
    return value && value->name() == name;
  };
  const auto& updates = graph.graph().state_updates();
  for (const auto& output : instruction.outputs()) {
    const int made = output.value();
    if (isNamed(made) ||
        std::any_of(updates.begin(), updates.end(), [&](const auto& u) { return u.next() == made && isNamed(u.state()); }))
      return made;
  }
  return -1;
}

QStringList completions(const QString& typed, const GraphSnapshot& graph, int most) {
  const qsizetype blank = typed.lastIndexOf(' ');
  const QString before = typed.left(std::max<qsizetype>(0, blank)).trimmed(), word = typed.mid(blank + 1);
  if (isValue(before, graph)) return followedBy(before, fields(), word);
  const qsizetype field = before.lastIndexOf(' ');
  if (field > 0 && fields().contains(before.mid(field + 1)) && isValue(before.left(field).trimmed(), graph))
    return followedBy(before, comparisons(), word);
  QStringList lines;
  const QString part = typed.trimmed();
  for (const auto& value : graph.graph().values()) {
    if (lines.size() >= most) break;
    const QString name = QString::fromStdString(value.name());
    if (!name.isEmpty() && name.contains(part, Qt::CaseInsensitive)) lines << name + ' ';
  }
  return lines;
}

}  // namespace stepscope::conditions

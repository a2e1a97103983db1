// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/log/log_links.h"

#include <QRegularExpression>

#include "views/common/format.h"
#include "views/common/names.h"

namespace stepscope {

LogLinks::LogLinks(GraphPtr graph, PlanPtr plan) : graph_(std::move(graph)), plan_(std::move(plan)) {
  if (!graph_) return;
  nodes_.reserve(static_cast<std::size_t>(graph_->nodeCount()));
  values_.reserve(static_cast<std::size_t>(graph_->graph().values_size()));
  for (const auto& node : graph_->graph().nodes()) {
    if (!node.name().empty()) nodes_.emplace(node.name(), node.id());
  }
  for (const auto& value : graph_->graph().values()) {
    if (!value.name().empty()) values_.emplace(value.name(), value.id());
  }
}

Selection LogLinks::named(const QString& name) const {
  const std::string key = name.toStdString();
  if (const auto it = values_.find(key); it != values_.end()) return Selection::ofValue(it->second);
  if (const auto it = nodes_.find(key); it != nodes_.end()) return Selection::ofNode(it->second);
  return {};
}

Selection LogLinks::find(const QString& text) const {
  static const QRegularExpression kQuoted(QStringLiteral("'([^']{1,1000})'"));
  static const QRegularExpression kNumbered(QStringLiteral("\\b(instruction|node|value) (\\d{1,9})\\b"),
                                            QRegularExpression::CaseInsensitiveOption);
  if (!graph_) return {};
  for (auto quoted = kQuoted.globalMatch(text); quoted.hasNext();) {
    if (const Selection found = named(quoted.next().captured(1)); !found.empty()) return found;
  }
  for (auto numbered = kNumbered.globalMatch(text); numbered.hasNext();) {
    const auto match = numbered.next();
    const QString kind = match.captured(1).toLower();
    const int number = match.captured(2).toInt();
    if (kind == u"instruction" && plan_ && plan_->instruction(number)) return Selection::ofInstruction(number);
    if (kind == u"node" && graph_->node(number)) return Selection::ofNode(number);
    if (kind == u"value" && graph_->value(number)) return Selection::ofValue(number);
  }
  return {};
}

QString LogLinks::name(const Selection& place) const {
  if (!graph_) return {};
  if (place.value >= 0) return names::value(*graph_, place.value);
  if (place.node >= 0) return names::node(*graph_, place.node);
  const auto* in = plan_ && place.instruction >= 0 ? plan_->instruction(place.instruction) : nullptr;
  return in ? QStringLiteral("%1 %2").arg(place.instruction).arg(names::op(*in)) : QString();
}

}  // namespace stepscope

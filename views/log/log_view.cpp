// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/log/log_view.h"

#include <QDateTime>
#include <QHBoxLayout>
#include <QJsonDocument>
#include <QJsonObject>
#include <QMenu>
#include <QScrollBar>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/common/format.h"
#include "views/common/icons.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

// "14:03:59.120" of milliseconds since 1970. There are many lines, and a QDateTime of each takes long.
QString timeOfDay(std::int64_t ms) {
  constexpr std::int64_t kDay = 24 * 3600 * 1000;
  return QTime::fromMSecsSinceStartOfDay(static_cast<int>(ms % kDay)).toString(QStringLiteral("HH:mm:ss.zzz"));
}

}  // namespace

LogView::LogView(const ViewContext& context, QWidget* parent)
    : TablePanel(
          context, QStringLiteral("log"), QStringLiteral("Log"),
          {{QStringLiteral("Time"), QStringLiteral("When the window heard of it, by the clock of this machine"), true, 7},
           {QStringLiteral("Level"), QStringLiteral("debug, info, warning, error"), false, 6},
           {QStringLiteral("Place"), QStringLiteral("Node, value or instruction that the record names; click selects it"),
            false, 12},
           {QStringLiteral("Text"), QStringLiteral("The record; the tooltip has it as it was written, with exact bytes"),
            false, 40}},
          parent),
      rule_(new QLineEdit),
      chips_(new QHBoxLayout) {
  const Metrics m = Metrics::current();
  setFilterPlaceholder(QStringLiteral("Filter: any word hides the other lines, nothing is dropped"));
  rule_->setPlaceholderText(QStringLiteral("Hide lines with… (text, or level:debug)"));
  rule_->setObjectName(QStringLiteral("log_rule"));
  rule_->setAccessibleName(QStringLiteral("New rule that hides lines"));
  rule_->setFixedWidth(22 * m.unit);
  chips_->setContentsMargins(qRound(0.6 * m.unit), 0, qRound(0.6 * m.unit), qRound(0.4 * m.unit));
  chips_->setSpacing(qRound(0.4 * m.unit));
  chips_->addWidget(rule_);
  chips_->addStretch(1);
  body()->insertLayout(1, chips_);
  connect(rule_, &QLineEdit::returnPressed, this, [this] {
    addRule(rule_->text());
    rule_->clear();
  });
  connect(&store(), &SnapshotStore::logChanged, this, &LogView::refillLater);
  const auto otherPlaces = [this] {
    places_.clear();
    links_ = {};
    refillLater();
  };
  connect(&store(), &SnapshotStore::graphChanged, this, otherPlaces);
  connect(&store(), &SnapshotStore::planChanged, this, otherPlaces);
}

QString LogView::headerText() const {
  std::int64_t hidden = 0;
  for (const std::int64_t n : hidden_) hidden += n;
  return hidden == 0 ? TablePanel::headerText()
                     : QStringLiteral("%1 · %2 hidden by rules").arg(TablePanel::headerText(), format::count(hidden));
}

QString LogView::emptyText() const {
  return store().log().empty()
             ? QStringLiteral("Nothing logged.\nWhat the worker warns of, refuses or loses is recorded here.")
             : QString();
}

QString LogView::saveState() const {
  const QJsonObject state{{QStringLiteral("filter"), TablePanel::saveState()}, {QStringLiteral("rules"), rules_.text()}};
  return QString::fromUtf8(QJsonDocument(state).toJson(QJsonDocument::Compact));
}

void LogView::restoreState(const QString& state) {
  const QJsonObject object = QJsonDocument::fromJson(state.toUtf8()).object();
  TablePanel::restoreState(object[QStringLiteral("filter")].toString());
  rules_ = LogRules::fromText(object[QStringLiteral("rules")].toString());
  refillLater();
}

void LogView::addRule(const QString& rule) {
  rules_.add(rule);
  refillLater();
}

void LogView::removeRule(const QString& rule) {
  rules_.remove(rule);
  refillLater();
}

QStringList LogView::hiddenTexts() const {
  QStringList texts;
  for (qsizetype i = 0; i < rules_.rules().size() && i < static_cast<qsizetype>(hidden_.size()); ++i) {
    texts << QStringLiteral("%1 hidden by %2").arg(format::count(hidden_[static_cast<std::size_t>(i)]), rules_.rules()[i]);
  }
  return texts;
}

void LogView::fillRules() {
  // The field stands first, the stretch last.
  while (chips_->count() > 2) {
    QLayoutItem* item = chips_->takeAt(1);
    item->widget()->deleteLater();
    delete item;
  }
  const QStringList texts = hiddenTexts();
  for (qsizetype i = 0; i < texts.size(); ++i) {
    auto* chip = new QToolButton;
    chip->setObjectName(QStringLiteral("log_chip"));
    chip->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    chip->setIcon(icon(QStringLiteral("close")));
    chip->setText(format::elided(format::visible(texts[i]), chip->fontMetrics(), 18 * Metrics::current().unit));
    chip->setToolTip(QStringLiteral("Show these lines again"));
    chip->setAccessibleName(QStringLiteral("%1; shows these lines again").arg(format::visible(texts[i])));
    connect(chip, &QToolButton::clicked, this, [this, rule = rules_.rules()[i]] { removeRule(rule); });
    chips_->insertWidget(static_cast<int>(i) + 1, chip);
  }
}

void LogView::refill() {
  const QScrollBar* bar = table()->verticalScrollBar();
  const bool atEnd = bar->value() >= bar->maximum();
  if (store().graph() && places_.empty()) links_ = LogLinks(store().graph(), store().plan());
  const std::int64_t dropped = store().logDropped();
  if (dropped > first_)
    places_.erase(places_.begin(),
                  places_.begin() + std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(places_.size()), dropped - first_));
  first_ = dropped;
  hidden_.assign(static_cast<std::size_t>(rules_.rules().size()), 0);
  std::vector<TableRow> rows;
  rows.reserve(store().log().size());
  std::size_t line = 0;
  const std::int64_t fromUtc = 1000 * QDateTime::currentDateTime().offsetFromUtc();
  for (const LogLine& record : store().log()) {
    if (places_.size() <= line) places_.push_back(links_.find(record.text));
    const std::size_t at = line++;
    if (const auto rule = rules_.hiddenBy(record)) {
      ++hidden_[static_cast<std::size_t>(*rule)];
      continue;
    }
    TableRow row;
    row.key = static_cast<qint64>(at);
    row.target = places_[at];
    const QString text = format::visible(record.text);
    TableCell level(record.level);
    level.role = record.level.startsWith(u"err")    ? QStringLiteral("error")
                 : record.level.startsWith(u"warn") ? QStringLiteral("warn")
                                                    : QStringLiteral("muted");
    TableCell time(timeOfDay(record.ms + fromUtc), QVariant::fromValue<qint64>(record.ms));
    time.role = QStringLiteral("faint");
    TableCell place(links_.name(row.target));
    place.role = QStringLiteral("accent");
    row.cells = {time, level, place, {format::bytesWithin(text), text, text}};
    rows.push_back(std::move(row));
  }
  setRows(std::move(rows));
  fillRules();
  // Who reads an older line is left there.
  if (atEnd) table()->scrollToBottom();
}

void LogView::fillMenu(QMenu& menu, int row) {
  const auto at = static_cast<std::size_t>(model().row(row).key);
  if (at >= store().log().size()) return;
  const QString level = store().log()[at].level, text = store().log()[at].text;
  menu.addAction(QStringLiteral("Hide level %1").arg(level), this,
                 [this, level] { addRule(QStringLiteral("level:") + level); });
  menu.addAction(QStringLiteral("Hide lines with this text"), this, [this, text] { addRule(text); });
  menu.addSeparator();
}

}  // namespace stepscope

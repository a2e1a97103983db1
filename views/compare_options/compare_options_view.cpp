// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare_options/compare_options_view.h"

#include <QHBoxLayout>
#include <QVBoxLayout>
#include <cmath>

#include "views/common/comparison_cells.h"
#include "views/common/format.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

std::vector<TableRow> rowsOf(const RunComparison& c) {
  std::vector<TableRow> rows;
  for (const ComparedOption& o : c.options) {
    const auto cell = [](const std::optional<QString>& value) {
      if (value) return comparison::plain(value->isEmpty() ? QStringLiteral("“”") : *value);
      TableCell none(QStringLiteral("not there"), {}, QStringLiteral("this run has no such option"));
      none.role = QStringLiteral("faint");
      return none;
    };
    TableRow row;
    row.cells = {comparison::plain(o.name), cell(o.a), cell(o.b)};
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

CompareOptionsView::CompareOptionsView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("compare_options"), QStringLiteral("Differences"),
                 {{QStringLiteral("Option"), QStringLiteral("Options and settings of the run that differ"), false, 11},
                  {QStringLiteral("A"), QStringLiteral("Value in run A"), false, 5},
                  {QStringLiteral("B"), QStringLiteral("Value in run B"), false, 5}},
                 parent),
      rtol_(new QLineEdit),
      atol_(new QLineEdit),
      verdict_(new QLabel),
      same_(new QLabel(QStringLiteral("Every option is the same in both runs."))) {
  const Metrics m = Metrics::current();
  setFilterPlaceholder(QStringLiteral("Filter options"));
  auto* top = new QVBoxLayout;
  top->setContentsMargins(m.padding, qRound(0.6 * m.unit), m.padding, qRound(0.5 * m.unit));
  top->setSpacing(qRound(0.4 * m.unit));
  auto* line = new QHBoxLayout;
  line->setSpacing(qRound(0.5 * m.unit));
  for (auto [edit, name, tip] :
       {std::tuple(rtol_, QStringLiteral("rtol"),
                   QStringLiteral("Relative tolerance: A and B agree when |A − B| ≤ atol + rtol · |B|")),
        std::tuple(atol_, QStringLiteral("atol"),
                   QStringLiteral("Absolute tolerance: A and B agree when |A − B| ≤ atol + rtol · |B|"))}) {
    auto* label = new QLabel(name);
    label->setProperty("role", "muted");
    label->setToolTip(tip);
    edit->setToolTip(tip);
    edit->setAccessibleName(edit == rtol_ ? QStringLiteral("Relative tolerance") : QStringLiteral("Absolute tolerance"));
    edit->setObjectName(QStringLiteral("compare_") + name);
    edit->setMinimumWidth(4 * m.unit);
    edit->setMaximumWidth(12 * m.unit);
    line->addWidget(label);
    line->addWidget(edit, 100);
    connect(edit, &QLineEdit::editingFinished, this, &CompareOptionsView::apply);
  }
  line->addStretch(1);  // in a wide panel the fields stay beside their names
  top->addLayout(line);
  verdict_->setTextFormat(Qt::PlainText);
  verdict_->setWordWrap(true);
  verdict_->setObjectName(QStringLiteral("compare_verdict"));
  top->addWidget(verdict_);
  body()->insertLayout(0, top);
  auto* rule = new QFrame;
  rule->setProperty("role", "line");
  rule->setFixedHeight(1);
  body()->insertWidget(1, rule);
  same_->setProperty("role", "muted");
  same_->setWordWrap(true);
  same_->setContentsMargins(m.padding, qRound(0.5 * m.unit), m.padding, qRound(0.5 * m.unit));
  body()->addWidget(same_);
  connect(&store().project(), &ProjectFacts::comparisonChanged, this, &CompareOptionsView::refillLater);
  connect(&store().project(), &ProjectFacts::runsChanged, this, &CompareOptionsView::emptyChanged);
  showTolerance();
}

QString CompareOptionsView::emptyText() const { return comparison::noneText(store().project()); }

void CompareOptionsView::showTolerance() {
  const CompareRequest& request = store().project().compareRequest();
  for (auto [edit, value] : {std::pair(rtol_, request.rtol), std::pair(atol_, request.atol)}) {
    if (!edit->hasFocus() || edit->text().toDouble() != value)
      edit->setText(QString::number(value, 'g', 6).replace(QStringLiteral("e-0"), QStringLiteral("e-")));
  }
}

void CompareOptionsView::apply() {
  CompareRequest request = store().project().compareRequest();
  for (auto [edit, value] : {std::pair(rtol_, &request.rtol), std::pair(atol_, &request.atol)}) {
    bool number = false;
    const double typed = edit->text().trimmed().replace(',', '.').toDouble(&number);
    if (!number || !std::isfinite(typed) || typed < 0) {
      emit wishes().status(QStringLiteral("%1 '%2': expected a number from 0, such as 1e-5")
                               .arg(edit->objectName().section('_', 1), format::visible(edit->text())));
      return showTolerance();
    }
    *value = typed;
  }
  if (request != store().project().compareRequest()) emit wishes().compareRuns(request);
}

void CompareOptionsView::refill() {
  showTolerance();
  const auto& result = store().project().runComparison();
  std::vector<TableRow> rows;
  QString verdict;
  const char* role = "muted";
  if (result) {
    rows = rowsOf(*result);
    if (result->both == 0) {
      verdict = QStringLiteral("The runs share no step number: nothing to compare step by step.");
    } else if (result->first) {
      verdict = QStringLiteral("First divergence: %1").arg(comparison::divergenceText(*result->first));
      role = "warn";
    } else if (result->unequal) {
      verdict = QStringLiteral("All %1 steps agree within the tolerance. First unequal number: %2")
                    .arg(format::count(result->both), comparison::divergenceText(*result->unequal));
      role = "ok";
    } else {
      verdict =
          result->both == 1
              ? QStringLiteral("The step that both have is equal in every bit of what was recorded.")
              : QStringLiteral("All %1 steps are equal in every bit of what was recorded.").arg(format::count(result->both));
      role = "ok";
    }
  }
  verdict_->setText(verdict);
  verdict_->setProperty("role", role);
  verdict_->style()->unpolish(verdict_);  // takes the new role
  verdict_->style()->polish(verdict_);
  same_->setVisible(result && rows.empty());
  table()->setVisible(!same_->isVisibleTo(this));
  setRows(std::move(rows));
}

}  // namespace stepscope

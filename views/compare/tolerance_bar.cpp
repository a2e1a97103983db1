// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/tolerance_bar.h"

#include <QHBoxLayout>
#include <QStyle>
#include <cmath>

#include "views/common/comparison_cells.h"
#include "views/common/format.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {
constexpr int kNarrowBar = 34;  // units: the verdict beside both fields would be a column of words
}  // namespace

ToleranceBar::ToleranceBar(const ViewContext& context, QWidget* parent)
    : QWidget(parent),
      context_(context),
      rtol_(new QLineEdit),
      atol_(new QLineEdit),
      verdict_(new QLabel),
      line_(new QBoxLayout(QBoxLayout::LeftToRight, this)) {
  const Metrics m = Metrics::current();
  line_->setContentsMargins(m.padding, 0, m.padding, qRound(0.4 * m.unit));
  line_->setSpacing(qRound(0.5 * m.unit));
  auto* line = new QHBoxLayout;
  line->setSpacing(qRound(0.5 * m.unit));
  verdict_->setTextFormat(Qt::PlainText);
  verdict_->setWordWrap(true);
  verdict_->setObjectName(QStringLiteral("compare_verdict"));
  line_->addWidget(verdict_, 1);
  line_->addLayout(line);
  for (auto [edit, name, what] : {std::tuple(rtol_, QStringLiteral("rtol"), QStringLiteral("Relative tolerance")),
                                  std::tuple(atol_, QStringLiteral("atol"), QStringLiteral("Absolute tolerance"))}) {
    const QString tip = what + QStringLiteral(": A and B agree when |A − B| ≤ atol + rtol · |B|");
    auto* label = new QLabel(name);
    label->setProperty("role", "muted");
    label->setToolTip(tip);
    edit->setToolTip(tip);
    edit->setAccessibleName(what);
    edit->setObjectName(QStringLiteral("compare_") + name);
    edit->setFixedWidth(5 * m.unit);
    line->addWidget(label);
    line->addWidget(edit);
    connect(edit, &QLineEdit::editingFinished, this, &ToleranceBar::apply);
  }
  line->addStretch(0);
  connect(&context_.store.project(), &ProjectFacts::comparisonChanged, this, [this] {
    showTolerance();
    showVerdict();
  });
  showTolerance();
  showVerdict();
}

void ToleranceBar::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  line_->setDirection(width() < kNarrowBar * Metrics::current().unit ? QBoxLayout::TopToBottom : QBoxLayout::LeftToRight);
}

void ToleranceBar::showTolerance() {
  const CompareRequest& request = context_.store.project().compareRequest();
  for (auto [edit, value] : {std::pair(rtol_, request.rtol), std::pair(atol_, request.atol)}) {
    if (!edit->hasFocus() || edit->text().toDouble() != value)
      edit->setText(QString::number(value, 'g', 6).replace(QStringLiteral("e-0"), QStringLiteral("e-")));
  }
}

void ToleranceBar::apply() {
  CompareRequest request = context_.store.project().compareRequest();
  for (auto [edit, value] : {std::pair(rtol_, &request.rtol), std::pair(atol_, &request.atol)}) {
    bool number = false;
    const double typed = edit->text().trimmed().replace(',', '.').toDouble(&number);
    if (!number || !std::isfinite(typed) || typed < 0) {
      emit context_.wishes.status(QStringLiteral("%1 '%2': expected a number from 0, such as 1e-5")
                                      .arg(edit->objectName().section('_', 1), format::visible(edit->text())));
      return showTolerance();
    }
    *value = typed;
  }
  if (request != context_.store.project().compareRequest()) emit context_.wishes.compareRuns(request);
}

void ToleranceBar::showVerdict() {
  const auto& result = context_.store.project().runComparison();
  QString verdict;
  const char* role = "muted";
  const QString same = comparison::oneRunText(context_.store.project());
  if (!result) {
  } else if (!same.isEmpty()) {
    verdict = same;
    role = "warn";
  } else if (result->both == 0) {
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
  if (result && same.isEmpty() && !result->unmeasured.isEmpty()) verdict += QStringLiteral("\n%1.").arg(result->unmeasured);
  verdict_->setText(verdict);
  verdict_->setProperty("role", role);
  verdict_->style()->unpolish(verdict_);  // takes the new role
  verdict_->style()->polish(verdict_);
}

}  // namespace stepscope

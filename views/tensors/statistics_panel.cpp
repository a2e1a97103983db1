// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/tensors/statistics_panel.h"

#include <QVBoxLayout>

#include "views/common/format.h"
#include "views/common/tokens.h"

namespace stepscope {

StatisticsPanel::StatisticsPanel(QWidget* parent) : QWidget(parent), histogram_(new Histogram), text_(new Details) {
  text_->setFitContents(true);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(histogram_);
  layout->addWidget(text_);
  connect(histogram_, &Histogram::clampChanged, this, &StatisticsPanel::clampChanged);
  connect(text_, &Details::commandClicked, this, [this] { emit elementWanted(firstNotFinite_); });
}

// A link to the first element that is not finite; a single number has no other.
QString StatisticsPanel::first() const {
  if (firstNotFinite_.empty()) return {};
  QStringList index;
  for (const qint64 i : firstNotFinite_) index << QString::number(i);
  return Details::text(QStringLiteral("  ")) +
         Details::command(QStringLiteral("first"), QStringLiteral("first at [%1]").arg(index.join(QStringLiteral(", "))));
}

void StatisticsPanel::set(const snapshot::TensorStatistics* s, std::int64_t step, bool present, const TensorPtr& tensor) {
  const bool gone = tensor && !tensor->unavailable().empty();
  firstNotFinite_.clear();
  if (tensor) firstNotFinite_.assign(tensor->first_not_finite().begin(), tensor->first_not_finite().end());
  histogram_->set(s ? std::optional(*s) : std::nullopt, !present || gone);
  setVisible(s != nullptr);
  if (!s) return;
  const Tokens& t = Tokens::current();
  text_->begin();
  // Numbers of another step, or of a value that is gone, say whose they are, and stand back.
  const bool back = !present || gone;
  const auto shown = [back](const QString& text) { return back ? Details::quiet(text) : Details::text(text); };
  if (back)
    text_->row(QStringLiteral("Statistics"),
               Details::text(QStringLiteral("of step %1").arg(format::count(step)) +
                             (gone ? QStringLiteral(", while it was in memory") : QString())) +
                   (present ? QString() : Details::quiet(QStringLiteral("  not the present one"))));
  if (s->count() > 0 && s->nan() + s->inf() >= s->count()) {
    text_->row(QStringLiteral("Finite"),
               Details::coloured(QStringLiteral("none of %1").arg(format::count(s->count())), t.number));
  } else {
    text_->row(QStringLiteral("Minimum"), shown(format::number(s->min())));
    text_->row(QStringLiteral("Maximum"), shown(format::number(s->max())));
    text_->row(QStringLiteral("Mean ± std"),
               shown(format::number(s->mean(), 3) + QStringLiteral(" ± ") + format::number(s->std(), 3)));
    text_->row(QStringLiteral("Norm"), shown(format::number(s->norm())));
  }
  const auto share = [s](std::int64_t n) {
    return n == 0 ? QString()
                  : Details::quiet(QStringLiteral("  ") +
                                   format::percent(static_cast<double>(n), static_cast<double>(s->count())));
  };
  text_->row(QStringLiteral("Zeros, negative"), shown(format::count(s->zeros())) + share(s->zeros()) +
                                                    shown(QStringLiteral(", ") + format::count(s->negative())) +
                                                    share(s->negative()));
  if (s->nan() == 0 && s->inf() == 0) {
    text_->row(QStringLiteral("NaN, Inf"),
               back ? shown(QStringLiteral("none")) : Details::coloured(QStringLiteral("none"), t.ok));
  } else {
    text_->row(
        QStringLiteral("NaN, Inf"),
        Details::coloured(QStringLiteral("%1 NaN, %2 Inf").arg(format::count(s->nan()), format::count(s->inf())), t.number) +
            first());
  }
  text_->end();
  text_->setToolTip(QStringLiteral("Over finite elements, in f64; std is of the population, norm is Euclidean"));
}

}  // namespace stepscope

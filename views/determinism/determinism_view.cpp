// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/determinism/determinism_view.h"

#include <QHBoxLayout>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/bits.h"
#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/script_drives.h"
#include "views/common/tokens.h"

namespace stepscope {

DeterminismView::DeterminismView(const ViewContext& context, QWidget* parent)
    : TablePanel(
          context, QStringLiteral("determinism"), QStringLiteral("Determinism"),
          {{QStringLiteral("Node"), QStringLiteral("Operator and place"), false, 20},
           {QStringLiteral("Verdict"), QStringLiteral("Same bits for the same build, machine and inputs?"), false, 15},
           {QStringLiteral("Reason"), QStringLiteral("Why"), false, 22}},
          parent),
      result_(new QLabel) {
  const Metrics m = Metrics::current();
  auto* line = new QHBoxLayout;
  line->setContentsMargins(m.padding, qRound(0.5 * m.unit), m.padding, 0);
  auto* twice = new QPushButton(QStringLiteral("Run twice, compare bits"));
  twice->setObjectName(QStringLiteral("determinism_twice"));
  result_->setTextFormat(Qt::PlainText);
  result_->setWordWrap(true);
  line->setSpacing(m.padding);
  line->addWidget(twice);
  line->addWidget(result_, 1);
  body()->insertLayout(0, line);
  const auto follow = [this, twice] {
    const bool recorded = store().readOnly();
    twice->setToolTip(
        recorded ? QStringLiteral("A recorded project cannot run; its verdicts are those of the build that was recorded")
                 : QStringLiteral("Runs the present step twice from the same state and compares every value bit for bit"));
    allow(store(), twice, !recorded && store().plan());
    setNothingText(
        recorded ? QStringLiteral("No verdicts in this project.\nThe program that recorded it, or a build that was "
                                  "interrupted, kept none; a new run of the model does.")
                 : QStringLiteral("No verdicts yet.\nThey come with every build: what each kernel promises. “Run twice” "
                                  "compares the bits of every value of the present step."));
  };
  follow();
  connect(&store(), &SnapshotStore::workerChanged, this, follow);
  connect(&store(), &SnapshotStore::planChanged, this, follow);
  connect(twice, &QPushButton::clicked, this, [this] { emit wishes().compareBits(); });
  connect(&store(), &SnapshotStore::determinismChanged, this, &DeterminismView::refillLater);
  connect(&store(), &SnapshotStore::comparisonChanged, this, &DeterminismView::refillLater);
}

QString DeterminismView::summary() const {
  const auto& list = store().determinismList();
  const auto count = [&list](auto&& holds) { return std::count_if(list.begin(), list.end(), holds); };
  const auto sure = count([](const auto& d) { return bitsOf(d) == Bits::kSame; });
  const auto unknown = count([](const auto& d) { return bitsOf(d) == Bits::kNotKnown; });
  const auto threads = count([](const auto& d) { return d.verdict() == "depends on thread count"; });
  const auto all = static_cast<std::ptrdiff_t>(list.size());
  if (all == 0) return {};
  if (sure == all) return QStringLiteral("All %1 nodes are deterministic").arg(format::count(all));
  QStringList parts{QStringLiteral("%1 of %2 nodes are deterministic").arg(format::count(sure), format::count(all))};
  for (const auto& [n, what] :
       {std::pair(threads, "for one number of threads"), std::pair(all - sure - unknown - threads, "differ from run to run"),
        std::pair(unknown, "not known yet")})
    if (n > 0) parts << QStringLiteral("%1 %2").arg(format::count(n), QLatin1String(what));
  return parts.join(QStringLiteral("; "));
}

// The verdict at this place of the list is on a node; a file of before told also of what moves its results.
QString DeterminismView::nameOf(std::size_t place) const {
  const auto& list = store().determinismList();
  const int node = list[place].node();
  if (!store().graph()) return QStringLiteral("node %1").arg(node);
  const PlanPtr& plan = store().plan();
  const snapshot::Instruction* in =
      plan && static_cast<std::size_t>(plan->size()) == list.size() ? plan->instruction(static_cast<int>(place)) : nullptr;
  const snapshot::Node* known = store().graph()->node(node);
  const bool moves = in && (in->kind() == snapshot::KIND_COMMIT || in->kind() == snapshot::KIND_COPY);
  if (!known || !moves || in->node() != node) return names::node(*store().graph(), node);
  return names::op(*in) + ' ' + names::place(*store().graph(), *known);
}

void DeterminismView::refill() {
  std::vector<TableRow> rows;
  const auto& comparison = store().comparison();
  if (comparison) {
    int differing = 0;
    for (const auto& v : comparison->values()) differing += !v.equal_bits();
    result_->setText(
        comparison->equal()
            ? QStringLiteral("Run twice: %1 values, all equal bit for bit").arg(format::count(comparison->values_size()))
            : QStringLiteral("Run twice: %1 of %2 values differ")
                  .arg(format::count(differing), format::count(comparison->values_size())));
    result_->setProperty("role", comparison->equal() ? "ok" : "error");
    for (const auto& v : comparison->values()) {
      if (v.equal_bits()) continue;
      TableRow row;
      TableCell verdict(QStringLiteral("bits differ"));
      verdict.role = QStringLiteral("error");
      QStringList at;
      for (const auto i : v.worst_index()) at << QString::number(i);
      row.cells = {format::visible(v.name()), verdict,
                   QStringLiteral("%1 elements, worst at [%2]: %3 and %4, largest difference %5")
                       .arg(format::count(v.differing()), at.join(QStringLiteral(", ")), format::number(v.a(), 9),
                            format::number(v.b(), 9), format::number(v.max_abs()))};
      rows.push_back(std::move(row));
    }
  } else {
    result_->setText(summary());
    result_->setProperty("role", "muted");
  }
  result_->setStyleSheet(QString());  // the role is read again
  for (std::size_t i = 0; i < store().determinismList().size(); ++i) {
    const auto& d = store().determinismList()[i];
    TableRow row;
    row.target = Selection::ofNode(d.node());
    const QString reason = format::visible(d.reason());
    TableCell verdict(format::visible(d.verdict()));
    verdict.role = bitsOf(d) == Bits::kSame        ? QStringLiteral("ok")
                   : bitsOf(d) == Bits::kMayDiffer ? QStringLiteral("warn")
                                                   : QString();
    verdict.tip = bitsMeaning(d);
    TableCell name(nameOf(i));
    if (const auto* node = store().graph() ? store().graph()->node(d.node()) : nullptr)
      name.swatch = QString::fromStdString(node->category());
    row.cells = {name, verdict, {reason, reason, reason}};
    rows.push_back(std::move(row));
  }
  setRows(std::move(rows));
}

}  // namespace stepscope

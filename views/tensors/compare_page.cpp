// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/tensors/compare_page.h"

#include <QHBoxLayout>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/icons.h"
#include "views/common/names.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

constexpr int kMostValues = 200;  // of the list; more would not be read
constexpr qsizetype kMostFiles = 8;

QString withValue(int value) { return QStringLiteral("value:%1").arg(value); }

bool sameShape(const snapshot::Value& a, const snapshot::Value& b) {
  return a.rank_known() && b.rank_known() && std::equal(a.dims().begin(), a.dims().end(), b.dims().begin(), b.dims().end());
}

}  // namespace

ComparePage::ComparePage(const ViewContext& context, QWidget* parent)
    : QWidget(parent),
      context_(context),
      with_(new QComboBox),
      keep_(new QToolButton),
      open_(new QToolButton),
      result_(new Details) {
  const Metrics m = Metrics::current();
  with_->setObjectName(QStringLiteral("tensor_compare_with"));
  with_->setAccessibleName(QStringLiteral("Compare with"));
  with_->setToolTip(QStringLiteral("What the shown value is compared with: kept contents, files, values of the same shape"));
  with_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  with_->setMinimumContentsLength(8);
  keep_->setText(QStringLiteral("Keep"));
  keep_->setToolTip(
      QStringLiteral("Keep the present contents: step on, change an option or run back, and see what became of them"));
  open_->setText(QStringLiteral("File…"));
  open_->setToolTip(QStringLiteral("Compare with a .npy file; it may also be dropped here"));
  for (QToolButton* button : {keep_, open_}) button->setAccessibleName(button->toolTip());
  result_->setAccessibleName(QStringLiteral("Difference"));
  auto* line = new QHBoxLayout;
  line->setContentsMargins(m.padding, qRound(0.25 * m.unit), m.padding, qRound(0.25 * m.unit));
  line->setSpacing(qRound(0.4 * m.unit));
  line->addWidget(with_, 1);
  line->addWidget(keep_);
  line->addWidget(open_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addLayout(line);
  layout->addWidget(result_, 1);

  connect(with_, &QComboBox::activated, this, [this](int i) { choose(with_->itemData(i).toString()); });
  connect(keep_, &QToolButton::clicked, this, &ComparePage::keep);
  connect(open_, &QToolButton::clicked, this, [this] { emit context_.wishes.compareWithFile(value_, {}); });
  connect(result_, &Details::commandClicked, this, [this](const QString& what) {
    std::vector<qint64> index;
    for (const QString& part : what.section(':', 1).split(',', Qt::SkipEmptyParts)) index.push_back(part.toLongLong());
    emit elementWanted(index);
  });
  connect(result_, &Details::selected, this, [this](const Selection& s) { context_.selection.select(s); });
  const Findings& findings = context_.store.findings();
  connect(&findings, &Findings::tensorComparisonChanged, this, [this] {
    const TensorComparison& found = context_.store.findings().tensorComparison();
    // Asked for by another way, with a dialog or from the menu: the page follows.
    if (found.value == value_ && !found.with.isEmpty() && found.with != chosen_) {
      chosen_ = found.with;
      if (!chosen_.startsWith(u"value:") && nameOf(chosen_).isEmpty()) files_.prepend(chosen_);
      files_ = files_.mid(0, kMostFiles);
      fillChoices();
    }
    fillResult();
  });
  connect(&findings, &Findings::keptChanged, this, [this] {
    const auto& kept = context_.store.findings().kept();
    if (keeping_ && !kept.empty()) {
      keeping_ = false;
      choose(kept.front().path);
    }
    fillChoices();
  });
  fillResult();
}

void ComparePage::setValue(int value) {
  if (value == value_) return;
  value_ = value;
  // Another value is compared with the same file or kept contents, but hardly with the same value.
  if (chosen_.startsWith(u"value:")) chosen_.clear();
  fillChoices();
  fillResult();
  contentsChanged();
}

void ComparePage::contentsChanged() {
  stale_ = true;
  if (isVisible()) ask();
}

void ComparePage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  fillChoices();
  if (stale_) ask();
}

void ComparePage::compareWithFile(const QString& path) {
  files_.removeAll(path);
  files_.prepend(path);
  files_ = files_.mid(0, kMostFiles);
  choose(path);
  fillChoices();
}

void ComparePage::keep() {
  if (value_ < 0) return;
  keeping_ = true;
  emit context_.wishes.keepTensor(value_);
}

void ComparePage::choose(const QString& with) {
  chosen_ = with;
  stale_ = true;
  ask();
  fillResult();
}

void ComparePage::ask() {
  stale_ = false;
  if (value_ < 0 || chosen_.isEmpty() || context_.store.readOnly()) return;
  if (chosen_.startsWith(u"value:")) {
    emit context_.wishes.compareWithValue(value_, chosen_.mid(6).toInt());
  } else {
    emit context_.wishes.compareWithFile(value_, chosen_);
  }
}

QString ComparePage::nameOf(const QString& with) const {
  const GraphPtr& graph = context_.store.graph();
  if (with.startsWith(u"value:")) return graph ? names::value(*graph, with.mid(6).toInt()) : QString();
  for (const KeptTensor& kept : context_.store.findings().kept()) {
    if (kept.path == with) return QStringLiteral("kept: %1, step %2").arg(format::visible(kept.name)).arg(kept.step);
  }
  return files_.contains(with) ? format::visible(with.section('/', -1)) : QString();
}

void ComparePage::fillChoices() {
  with_->clear();
  with_->addItem(QStringLiteral("Compare with…"), QString());
  const auto add = [this](const QString& with) {
    if (with_->findData(with) < 0) with_->addItem(nameOf(with), with);
  };
  for (const KeptTensor& kept : context_.store.findings().kept()) add(kept.path);
  for (const QString& file : std::as_const(files_)) add(file);
  const GraphPtr& graph = context_.store.graph();
  const auto* shown = graph ? graph->value(value_) : nullptr;
  if (shown) {
    const auto offer = [&](int id) {
      const auto* other = graph->value(id);
      if (id != value_ && other && with_->count() < kMostValues && sameShape(*shown, *other)) add(withValue(id));
    };
    // Those of the same node first.
    if (const auto* node = graph->node(context_.selection.selection().node)) {
      for (const int id : node->inputs()) offer(id);
      for (const int id : node->outputs()) offer(id);
    }
    for (const int id : context_.store.watched()) offer(id);
    if (isVisible()) {
      for (const auto& value : graph->graph().values()) {
        if (with_->count() >= kMostValues) break;
        offer(value.id());
      }
    }
  }
  if (!chosen_.isEmpty()) add(chosen_);
  with_->setCurrentIndex(std::max(0, with_->findData(chosen_)));
}

void ComparePage::fillResult() {
  const TensorComparison& found = context_.store.findings().tensorComparison();
  const Tokens& t = Tokens::current();
  result_->begin();
  if (context_.store.readOnly()) {
    result_->paragraph(Details::quiet(QStringLiteral("A recorded project keeps no contents to compare.")));
  } else if (chosen_.isEmpty()) {
    result_->paragraph(Details::quiet(
        QStringLiteral("Choose what to compare with, drop a .npy file here, or keep the present contents and look at "
                       "another step or option.")));
  } else if (found.value != value_ || found.with != chosen_) {
    result_->paragraph(Details::quiet(QStringLiteral("Comparing with %1 …").arg(nameOf(chosen_))));
  } else if (!found.problem.isEmpty()) {
    result_->paragraph(Details::coloured(format::visible(found.problem), t.warn));
  } else {
    const snapshot::ComparisonResult& r = found.result;
    const bool number = r.worst_index_size() > 0 || r.max_abs() > 0;
    if (r.equal_bits()) {
      result_->row(QStringLiteral("Verdict"),
                   Details::coloured(QStringLiteral("equal, all %1 elements").arg(format::count(r.elements())), t.ok));
    } else if (!number) {
      result_->row(QStringLiteral("Verdict"),
                   Details::coloured(QStringLiteral("equal numbers"), t.ok) +
                       Details::quiet(QStringLiteral("  %1 elements have other bits: −0 and 0, or kinds of NaN")
                                          .arg(format::count(r.differing()))));
    } else {
      result_->row(QStringLiteral("Verdict"), Details::coloured(QStringLiteral("different"), t.warn));
      result_->row(QStringLiteral("Differing"),
                   Details::text(QStringLiteral("%1 of %2").arg(format::count(r.differing()), format::count(r.elements()))) +
                       Details::quiet(QStringLiteral("  ") + format::percent(static_cast<double>(r.differing()),
                                                                             static_cast<double>(r.elements()))));
      result_->row(QStringLiteral("Largest"),
                   Details::text(QStringLiteral("%1 absolute").arg(format::number(r.max_abs()))) +
                       Details::quiet(QStringLiteral(", %1 relative").arg(format::number(r.max_rel(), 3))));
      QStringList at;
      for (const auto i : r.worst_index()) at << QString::number(i);
      const QString place = QStringLiteral("[%1]").arg(at.join(QStringLiteral(", ")));
      result_->row(QStringLiteral("At"), at.isEmpty() ? Details::text(QStringLiteral("the only element"))
                                                      : Details::command(QStringLiteral("at:") + at.join(','), place));
      result_->row(QStringLiteral("Here"), Details::mono(format::number(r.a(), 9)));
      result_->row(QStringLiteral("There"), Details::mono(format::number(r.b(), 9)));
    }
    result_->setToolTip(QStringLiteral(
        "Whole tensors, in f64; NaN equals NaN, an infinity its equal. Relative: to the larger of the two magnitudes"));
  }
  result_->end();
}

}  // namespace stepscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/tensors/tensors_view.h"

#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QInputDialog>
#include <QMenu>
#include <QScrollArea>
#include <QShortcut>
#include <QSplitter>
#include <QStyle>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/format.h"
#include "views/common/icons.h"
#include "views/common/names.h"
#include "views/common/tokens.h"
#include "views/tensors/comparison.h"

namespace stepscope {
namespace {
constexpr std::int64_t kMostElements = 64 * 1024;  // of one plane; the most the worker sends as one window
}

TensorsView::TensorsView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("tensors"), tr("Tensor"), parent),
      operands_(new QComboBox),
      details_(new Details),
      histogram_(new Histogram),
      statistics_(new Details),
      tabs_(new QTabBar),
      scale_(new QLabel),
      slice_(new QLineEdit),
      problem_(new QLabel),
      pages_(new QStackedWidget),
      elements_(new QTableView),
      table_(new TensorTable(this)),
      heat_(new HeatMap),
      comparison_(new Details),
      more_(new QToolButton) {
  const Metrics m = Metrics::current();
  operands_->setAccessibleName(tr("Inputs and outputs of the selected instruction"));
  operands_->setToolTip(tr("Inputs and outputs of the selected instruction"));
  operands_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  operands_->setMinimumContentsLength(8);
  more_->setIcon(icon(QStringLiteral("more")));
  more_->setToolTip(tr("Watch, pin, save, edit, keep for comparison"));
  more_->setAccessibleName(tr("Actions on this tensor"));
  details_->setFitContents(true);
  statistics_->setFitContents(true);

  auto* upper = new QWidget;
  auto* upperLayout = new QVBoxLayout(upper);
  upperLayout->setContentsMargins(0, 0, 0, 0);
  upperLayout->setSpacing(0);
  auto* top = new QHBoxLayout;
  top->setContentsMargins(m.padding, qRound(0.5 * m.unit), qRound(0.4 * m.unit), 0);
  top->addWidget(operands_, 1);
  top->addWidget(more_);
  upperLayout->addLayout(top);
  upperLayout->addWidget(details_);
  upperLayout->addWidget(histogram_);
  upperLayout->addWidget(statistics_);
  upperLayout->addStretch(1);
  auto* scroll = new QScrollArea;
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setWidget(upper);

  auto* lower = new QWidget;
  auto* lowerLayout = new QVBoxLayout(lower);
  lowerLayout->setContentsMargins(0, 0, 0, 0);
  lowerLayout->setSpacing(0);
  auto* header = new QHBoxLayout;
  header->setContentsMargins(qRound(0.3 * m.unit), qRound(0.25 * m.unit), m.padding, qRound(0.25 * m.unit));
  header->setSpacing(qRound(0.6 * m.unit));
  for (const QString& title : {tr("Values"), tr("Heat map"), tr("Compare")}) tabs_->addTab(title);
  tabs_->setDrawBase(false);
  tabs_->setExpanding(false);
  tabs_->setObjectName(QStringLiteral("quiet_tabs"));
  tabs_->setAccessibleName(tr("How the elements are shown"));
  scale_->setProperty("role", "faint");
  scale_->setFont(smallFont());
  slice_->setFont(monoFont());
  slice_->setAccessibleName(tr("Slice"));
  slice_->setToolTip(tr("An index fixes an axis, : or a:b spreads it over rows and columns"));
  slice_->setMaximumWidth(8 * m.unit);
  tabs_->setUsesScrollButtons(false);
  tabs_->setElideMode(Qt::ElideNone);
  header->addWidget(tabs_);
  header->addStretch(1);
  header->addWidget(scale_);
  header->addWidget(slice_);
  lowerLayout->addLayout(header);
  problem_->setProperty("role", "error");
  problem_->setTextFormat(Qt::PlainText);
  problem_->setWordWrap(true);
  problem_->setContentsMargins(m.padding, 0, m.padding, 4);
  problem_->hide();
  lowerLayout->addWidget(problem_);
  elements_->setModel(table_);
  elements_->setObjectName(QStringLiteral("tensor_elements"));
  elements_->setAccessibleName(tr("Elements"));
  elements_->setFrameShape(QFrame::NoFrame);
  elements_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  elements_->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  elements_->setCornerButtonEnabled(false);
  elements_->verticalHeader()->setDefaultSectionSize(qRound(1.6 * m.unit));
  elements_->verticalHeader()->setMinimumSectionSize(qRound(1.6 * m.unit));
  elements_->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  elements_->verticalHeader()->setFont(smallFont());
  elements_->horizontalHeader()->setDefaultSectionSize(qRound(5.2 * m.unit));
  elements_->horizontalHeader()->setFont(smallFont());
  elements_->horizontalHeader()->setFixedHeight(qRound(1.8 * m.unit));
  pages_->addWidget(elements_);
  pages_->addWidget(heat_);
  pages_->addWidget(comparison_);
  lowerLayout->addWidget(pages_, 1);

  auto* splitter = new QSplitter(Qt::Vertical);
  splitter->setHandleWidth(1);
  splitter->setChildrenCollapsible(false);
  splitter->addWidget(scroll);
  splitter->addWidget(lower);
  splitter->setStretchFactor(0, 3);
  splitter->setStretchFactor(1, 2);
  splitter->setSizes({560, 360});
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(splitter);

  connect(operands_, &QComboBox::activated, this, [this](int i) {
    Selection s = selection().selection();
    s.value = operands_->itemData(i).toInt();
    s.buffer = -1;
    selection().select(s);
  });
  for (Details* page : {details_, statistics_, comparison_}) {
    connect(page, &Details::selected, this, [this](const Selection& s) { selection().select(s); });
    connect(page, &Details::commandClicked, this, [this](const QString& what) {
      if (what.startsWith(u"runpast:")) {
        emit wishes().runTo(what.mid(8).toInt() + 1);
      } else if (what == u"pin") {
        emit wishes().pin(value_, true);
      }
    });
  }
  connect(tabs_, &QTabBar::currentChanged, pages_, &QStackedWidget::setCurrentIndex);
  connect(slice_, &QLineEdit::returnPressed, this, &TensorsView::applySlice);
  connect(elements_, &QTableView::doubleClicked, this, &TensorsView::editCell);
  connect(histogram_, &Histogram::clampChanged, heat_, &HeatMap::setRange);
  connect(more_, &QToolButton::clicked, this, &TensorsView::openMenu);
  auto* copy = new QShortcut(QKeySequence::Copy, elements_, nullptr, nullptr, Qt::WidgetShortcut);
  connect(copy, &QShortcut::activated, this, [this] {
    QStringList lines;
    int last = -1;
    QModelIndexList chosen = elements_->selectionModel()->selectedIndexes();
    std::sort(chosen.begin(), chosen.end());
    for (const QModelIndex& i : std::as_const(chosen)) {
      if (i.row() != last) {
        lines << i.data(Qt::UserRole).toString();
      } else {
        lines.last() += '\t' + i.data(Qt::UserRole).toString();
      }
      last = i.row();
    }
    QApplication::clipboard()->setText(lines.join('\n'));
  });
  connect(&selection(), &SelectionModel::selectionChanged, this, &TensorsView::followSelection);
  connect(&store(), &SnapshotStore::graphChanged, this, [this] {
    value_ = -1;
    followSelection();
  });
  connect(&store(), &SnapshotStore::positionChanged, this, [this] {
    stale_ = true;
    if (isVisible()) fetch();
  });
  connect(&store(), &SnapshotStore::tensorArrived, this, [this](int value) {
    if (value == value_) show();
  });
  connect(&store(), &SnapshotStore::pinnedChanged, this, &TensorsView::showDetails);
  connect(&store(), &SnapshotStore::watchedChanged, this, &TensorsView::showDetails);
  followSelection();
}

QString TensorsView::emptyText() const {
  if (!store().graph()) return tr("No model is open.\nOpen one (Ctrl+O) and select a node or a tensor.");
  return value_ < 0 ? tr("No tensor is selected.\nSelect an instruction, a node or an edge of the graph.") : QString();
}

void TensorsView::find() {
  slice_->setFocus();
  slice_->selectAll();
}

void TensorsView::showEvent(QShowEvent* event) {
  View::showEvent(event);
  if (stale_) fetch();
}

std::vector<std::int64_t> TensorsView::dims() const {
  if (const TensorPtr t = store().tensor(value_); t && (t->dims_size() > 0 || t->data().size() > 0)) return {t->dims().begin(), t->dims().end()};
  std::vector<std::int64_t> dims;
  const auto* v = store().graph() ? store().graph()->value(value_) : nullptr;
  if (!v) return {};
  for (const auto& d : v->dims()) {
    bool ok = false;
    dims.push_back(QString::fromStdString(d).toLongLong(&ok));
    if (!ok || dims.back() < 0) return {};
  }
  return dims;
}

void TensorsView::followSelection() {
  fillOperands();
  showValue(selection().selection().value);
}

void TensorsView::fillOperands() {
  operands_->clear();
  const GraphPtr& graph = store().graph();
  const snapshot::Node* node = graph ? graph->node(selection().selection().node) : nullptr;
  if (!node) return;
  const auto add = [&](const QString& kind, int i, int value) {
    if (value >= 0) operands_->addItem(QStringLiteral("%1 %2   %3").arg(kind).arg(i).arg(names::value(*graph, value)), value);
  };
  for (int i = 0; i < node->outputs_size(); ++i) add(tr("out"), i, node->outputs(i));
  for (int i = 0; i < node->inputs_size(); ++i) add(tr("in"), i, node->inputs(i));
  const int at = operands_->findData(selection().selection().value);
  if (at < 0 && selection().selection().value >= 0) {
    operands_->insertItem(0, names::value(*graph, selection().selection().value), selection().selection().value);
  }
  operands_->setCurrentIndex(std::max(0, at));
}

void TensorsView::showValue(int value) {
  const bool another = value != value_;
  value_ = value;
  emit emptyChanged();
  if (value_ < 0) return;
  if (another) {
    wanted_ = Slice::first(dims(), kMostElements);
    stale_ = true;
    if (isVisible()) fetch();
  }
  show();
}

void TensorsView::fetch() {
  stale_ = false;
  if (value_ < 0 || store().readOnly()) return;
  const std::vector<std::int64_t> d = dims();
  if (wanted_.extent.size() != d.size()) wanted_ = Slice::first(d, kMostElements);
  const auto* v = store().graph() ? store().graph()->value(value_) : nullptr;
  const bool known = !d.empty() || (v && v->rank_known() && v->dims_size() == 0);
  std::vector<qint64> begin(wanted_.begin.begin(), wanted_.begin.end()), extent(wanted_.extent.begin(), wanted_.extent.end());
  // Extents that are not known yet: one element brings them along.
  if (!known && v) {
    begin.assign(static_cast<std::size_t>(v->dims_size()), 0);
    extent.assign(static_cast<std::size_t>(v->dims_size()), 1);
  }
  emit wishes().fetchTensor(value_, begin, extent);
}

void TensorsView::show() {
  if (value_ < 0) return;
  const TensorPtr tensor = store().tensor(value_);
  // The first answer about a value of unknown shape is one element; now its plane can be asked for.
  if (tensor && tensor->dims_size() > 0 && wanted_.extent.size() != static_cast<std::size_t>(tensor->dims_size())) {
    wanted_ = Slice::first(dims(), kMostElements);
    fetch();
  }
  showDetails();
  showStatistics();
  showElements();
  showComparison();
}

void TensorsView::showDetails() {
  const GraphPtr& graph = store().graph();
  const auto* v = graph ? graph->value(value_) : nullptr;
  if (!v) return;
  const Tokens& t = Tokens::current();
  const PlanPtr& plan = store().plan();
  const TensorPtr tensor = store().tensor(value_);
  const int producer = plan ? plan->producerOfValue(value_) : -1;
  const auto& position = store().position();
  details_->begin();
  const bool pending = position.in_step() && producer >= position.instruction();
  if (tensor && !tensor->unavailable().empty()) {
    QString text = Details::text(format::visible(tensor->unavailable()));
    if (pending) text = Details::text(tr("Not computed yet in step %1. ").arg(position.step())) + Details::command(QStringLiteral("runpast:%1").arg(producer), tr("Run past %1").arg(producer));
    else if (plan && plan->overwrittenBy(plan->bufferOfValue(value_)) >= 0) text += QStringLiteral(". ") + Details::command(QStringLiteral("pin"), tr("Pin keeps it from the next step on"));
    details_->notice(text);
  } else if (tensor && !tensor->current()) {
    QString text = Details::text(tr("Values of step %1: ").arg(tensor->step()));
    text += position.in_step() ? Details::text(tr("not computed yet in step %1. ").arg(position.step())) : Details::text(tr("the next step has not begun. "));
    if (producer >= 0) text += Details::command(QStringLiteral("runpast:%1").arg(producer), tr("Run past %1").arg(producer));
    details_->notice(text);
  }
  details_->row(tr("Value"), Details::strong(names::value(*graph, value_)));
  details_->row(tr("Shape, type"), Details::text(names::shapeAndType(*v)));
  details_->row(tr("Role"), Details::text(names::role(*v)) + (v->trained_reason().empty() ? QString() : Details::quiet(QStringLiteral("  ") + format::visible(v->trained_reason()))));
  if (producer >= 0) {
    const auto* in = plan->instruction(producer);
    details_->row(tr("Made by"), Details::link(Selection::ofInstruction(producer), QStringLiteral("%1 %2").arg(producer).arg(format::visible(in->op()))));
  }
  const auto* buffer = plan ? plan->buffer(plan->bufferOfValue(value_)) : nullptr;
  if (buffer) {
    QString place = Details::text(format::visible(buffer->decision()));
    if (buffer->shares() >= 0) {
      const auto* other = plan->buffer(buffer->shares());
      place += QStringLiteral("  ") + Details::link(Selection::ofBuffer(buffer->shares()), other ? format::visible(other->name()) : QString::number(buffer->shares()));
    }
    details_->row(tr("Buffer"), place);
    details_->row(tr("Lives"), Details::text(tr("%1 – %2").arg(buffer->first()).arg(buffer->last())) + Details::quiet(QStringLiteral("  ") + names::bufferClass(buffer->buffer_class())));
    if (const int next = plan->overwrittenBy(buffer->index()); next >= 0) {
      details_->row(tr("Reused"), Details::text(tr("by ")) + Details::link(Selection::ofInstruction(next), QStringLiteral("%1 %2").arg(next).arg(format::visible(plan->instruction(next)->op()))) + Details::quiet(tr("  after its last use")));
    }
  }
  const int madeBy = graph->producer(value_);
  if (const auto* node = graph->node(madeBy)) {
    if (const int forward = graph->forwardOf(madeBy); forward >= 0) {
      details_->row(tr("From"), Details::link(Selection::ofNode(forward), names::node(*graph, forward)) + Details::quiet(tr("  by %1").arg(format::visible(node->provenance().pass()))));
    }
    if (const QString source = names::source(node->provenance()); !source.isEmpty()) details_->row(tr("Source"), Details::mono(source));
  }
  QString tags;
  const auto has = [this](const std::vector<int>& list) { return std::find(list.begin(), list.end(), value_) != list.end(); };
  if (has(store().pinned())) tags += Details::tag(tr("pinned"), t.muted);
  if (has(store().watched())) tags += Details::tag(tr("watched"), t.muted);
  if (const auto* d = store().determinism(madeBy); d && !d->verdict().starts_with("deterministic")) tags += Details::tag(format::visible(d->verdict()), t.warn);
  if (!tags.isEmpty()) details_->paragraph(tags);
  details_->end();
}

void TensorsView::showStatistics() {
  const auto* s = store().statistics(value_);
  const TensorPtr tensor = store().tensor(value_);
  const bool old = tensor && !tensor->current();
  histogram_->set(s ? std::optional(*s) : std::nullopt, old);
  histogram_->setVisible(s != nullptr);
  statistics_->setVisible(s != nullptr);
  if (!s) return;
  const Tokens& t = Tokens::current();
  statistics_->begin();
  statistics_->row(tr("Minimum"), Details::text(format::number(s->min())));
  statistics_->row(tr("Maximum"), Details::text(format::number(s->max())));
  statistics_->row(tr("Mean ± std"), Details::text(format::number(s->mean(), 3) + QStringLiteral(" ± ") + format::number(s->std(), 3)));
  statistics_->row(tr("Norm"), Details::text(format::number(s->norm())));
  const auto share = [s](std::int64_t n) { return n == 0 ? QString() : Details::quiet(QStringLiteral("  ") + format::percent(static_cast<double>(n), static_cast<double>(s->count()))); };
  statistics_->row(tr("Zeros, negative"), Details::text(format::count(s->zeros())) + share(s->zeros()) + Details::text(QStringLiteral(", ") + format::count(s->negative())) + share(s->negative()));
  if (s->nan() == 0 && s->inf() == 0) {
    statistics_->row(tr("NaN, Inf"), Details::coloured(tr("none"), t.ok));
  } else {
    statistics_->row(tr("NaN, Inf"), Details::coloured(tr("%1 NaN, %2 Inf").arg(format::count(s->nan()), format::count(s->inf())), t.number));
  }
  statistics_->end();
  statistics_->setToolTip(tr("Over finite elements, in f64; std is of the population, norm is Euclidean"));
}

void TensorsView::showElements() {
  const TensorPtr tensor = store().tensor(value_);
  TensorValues values(tensor);
  Slice slice = wanted_;
  // What came may be another slice than the one wanted now.
  if (values.extent() != slice.extent || values.begin() != slice.begin) {
    slice = Slice::first(values.extent(), kMostElements);
    slice.begin = values.begin();
    slice.extent = values.extent();
  }
  const int row = elements_->currentIndex().row(), column = elements_->currentIndex().column();
  table_->set(std::move(values), slice);
  if (row >= 0 && row < table_->rowCount() && column < table_->columnCount()) elements_->setCurrentIndex(table_->index(row, column));
  heat_->show(*table_);
  if (!slice_->hasFocus()) slice_->setText(slice.text(dims()));
  slice_->setEnabled(!dims().empty());
  static const QString kDigits = QStringLiteral("⁰¹²³⁴⁵⁶⁷⁸⁹");
  QString power;
  for (const QChar c : QString::number(std::abs(table_->exponent()))) power += kDigits[c.digitValue()];
  scale_->setText(table_->exponent() == 0 ? QString() : QStringLiteral("× 10%1%2").arg(table_->exponent() < 0 ? QStringLiteral("⁻") : QString(), power));
  problem_->setVisible(false);
}

void TensorsView::showComparison() {
  comparison_->begin();
  const TensorPtr tensor = store().tensor(value_);
  if (!kept_) {
    comparison_->paragraph(Details::quiet(tr("Nothing is kept to compare with. Choose “Keep for comparison” in the menu above, then look at another value, step or option.")));
  } else {
    comparison_->row(tr("Kept"), Details::text(format::visible(kept_->name())) + Details::quiet(tr("  step %1").arg(kept_->step())));
    QString why;
    const snapshot::ComparisonResult r = compareTensors(TensorValues(kept_), TensorValues(tensor), &why);
    const Tokens& t = Tokens::current();
    if (!tensor || tensor->data().empty()) {
      comparison_->paragraph(Details::quiet(tr("The shown value has no contents yet.")));
    } else if (!why.isEmpty()) {
      comparison_->paragraph(Details::coloured(why, t.warn));
    } else if (r.equal_bits()) {
      comparison_->row(tr("Verdict"), Details::coloured(tr("equal"), t.ok));
    } else {
      QStringList at;
      for (int i = 0; i < r.worst_index_size(); ++i) at << QString::number(r.worst_index(i) + (i < static_cast<int>(wanted_.begin.size()) ? wanted_.begin[static_cast<std::size_t>(i)] : 0));
      comparison_->row(tr("Differing"), Details::text(tr("%1 of %2").arg(format::count(r.differing()), format::count(TensorValues(tensor).count()))));
      comparison_->row(tr("Largest"), Details::text(tr("%1 absolute").arg(format::number(r.max_abs()))));
      comparison_->row({}, Details::text(tr("%1 relative").arg(format::number(r.max_rel()))));
      comparison_->row(tr("Worst at"), Details::mono(QStringLiteral("[%1]").arg(at.join(QStringLiteral(", ")))));
      comparison_->row(tr("Kept, shown"), Details::mono(format::number(r.a(), 9) + QStringLiteral(", ") + format::number(r.b(), 9)));
    }
  }
  comparison_->end();
}

void TensorsView::applySlice() {
  QString error;
  const Slice slice = Slice::parse(slice_->text(), dims(), kMostElements, &error);
  problem_->setText(error);
  problem_->setVisible(!error.isEmpty());
  if (!error.isEmpty()) return;
  wanted_ = slice;
  fetch();
}

void TensorsView::editCell(const QModelIndex& index) {
  if (store().readOnly()) return;
  auto* dialog = new QInputDialog(this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(tr("Edit element"));
  dialog->setLabelText(index.data(Qt::ToolTipRole).toString());
  dialog->setTextValue(index.data(Qt::UserRole).toString());
  connect(dialog, &QInputDialog::textValueSelected, this, [this, at = table_->position(index), value = value_](const QString& text) {
    bool ok = false;
    const double number = text.trimmed().toDouble(&ok);
    if (ok) {
      emit wishes().editTensor(value, at, number, false);
    } else {
      emit wishes().status(tr("element: '%1'; expected a number, nan or inf").arg(text));
    }
  });
  dialog->open();
}

void TensorsView::openMenu() {
  if (value_ < 0) return;
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  const auto has = [this](const std::vector<int>& list) { return std::find(list.begin(), list.end(), value_) != list.end(); };
  const bool watched = has(store().watched()), pinned = has(store().pinned());
  menu->addAction(icon(QStringLiteral("eye")), watched ? tr("Stop watching") : tr("Watch"), this, [this, watched] { emit wishes().watch(value_, !watched); });
  menu->addAction(icon(QStringLiteral("pin")), pinned ? tr("Unpin") : tr("Pin: keep its memory"), this, [this, pinned] { emit wishes().pin(value_, !pinned); });
  menu->addSeparator();
  menu->addAction(tr("Keep for comparison"), this, [this] {
    kept_ = store().tensor(value_);
    tabs_->setCurrentIndex(2);
    showComparison();
  });
  menu->addAction(tr("Fill with a number…"), this, [this] {
    auto* dialog = new QInputDialog(this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setInputMode(QInputDialog::DoubleInput);
    dialog->setDoubleDecimals(6);
    dialog->setDoubleRange(-1e30, 1e30);
    dialog->setWindowTitle(tr("Fill"));
    dialog->setLabelText(tr("Every element of this tensor becomes:"));
    connect(dialog, &QInputDialog::doubleValueSelected, this, [this, value = value_](double x) { emit wishes().editTensor(value, {}, x, true); });
    dialog->open();
  });
  menu->addAction(icon(QStringLiteral("save")), tr("Save as .npy…"), this, [this] { emit wishes().saveTensor(value_); });
  menu->addSeparator();
  menu->addAction(tr("Break when it holds a NaN"), this, [this] {
    snapshot::Breakpoint b;
    b.set_predicate(store().graph()->value(value_)->name() + " nan > 0");
    b.set_enabled(true);
    emit wishes().addBreakpoint(b);
  });
  menu->popup(more_->mapToGlobal(QPoint(0, more_->height())));
}

}  // namespace stepscope

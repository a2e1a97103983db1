// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/tensors/elements_panel.h"

#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QShortcut>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "views/common/branches.h"
#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/script_drives.h"
#include "views/common/tokens.h"
#include "views/tensors/tensor_menu.h"

namespace stepscope {
namespace {
constexpr std::int64_t kMostElements = 64 * 1024;  // of one plane; the most the worker sends as one window

QString powerOfTen(int exponent) {
  static const QString kDigits = QStringLiteral("⁰¹²³⁴⁵⁶⁷⁸⁹");
  if (exponent == 0) return {};
  QString digits;
  for (const QChar c : QString::number(std::abs(exponent))) digits += kDigits[c.digitValue()];
  return QStringLiteral("× 10%1%2").arg(exponent < 0 ? QStringLiteral("⁻") : QString(), digits);
}
}  // namespace

ElementsPanel::ElementsPanel(const ViewContext& context, QWidget* parent)
    : QWidget(parent),
      context_(context),
      tabs_(new QTabBar),
      slice_(new QLineEdit),
      scale_(new QLabel),
      problem_(new QLabel),
      none_(new QLabel),
      pages_(new QStackedWidget),
      elements_(new QTableView),
      table_(new TensorTable(this)),
      editor_(new ElementEditor(this)),
      heat_(new HeatMap),
      comparison_(new ComparePage(context)) {
  const Metrics m = Metrics::current();
  for (const QString& title : {QStringLiteral("Values"), QStringLiteral("Heat map"), QStringLiteral("Compare")})
    tabs_->addTab(title);
  tabs_->setDrawBase(false);
  tabs_->setExpanding(false);
  tabs_->setUsesScrollButtons(false);
  tabs_->setElideMode(Qt::ElideNone);
  tabs_->setObjectName(QStringLiteral("quiet_tabs"));
  tabs_->setAccessibleName(QStringLiteral("How the elements are shown"));
  slice_->setFont(monoFont());
  slice_->setObjectName(QStringLiteral("tensor_slice"));
  slice_->setAccessibleName(QStringLiteral("Slice"));
  slice_->setToolTip(QStringLiteral("An index fixes an axis, : or a:b spreads it over rows and columns"));
  scale_->setProperty("role", "faint");
  scale_->setFont(smallFont());
  problem_->setProperty("role", "error");
  problem_->setObjectName(QStringLiteral("tensor_problem"));
  problem_->setTextFormat(Qt::PlainText);
  problem_->setWordWrap(true);
  problem_->setContentsMargins(m.padding, 0, m.padding, 4);
  problem_->hide();

  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  auto* header = new QHBoxLayout;
  header->setContentsMargins(qRound(0.3 * m.unit), qRound(0.25 * m.unit), m.padding, 0);
  header->addWidget(tabs_);
  header->addStretch(1);
  layout->addLayout(header);
  // A line of its own: beside the tabs a narrow panel would cut it.
  auto* sliceLine = new QWidget;
  auto* line = new QHBoxLayout(sliceLine);
  line->setContentsMargins(m.padding, qRound(0.25 * m.unit), m.padding, qRound(0.25 * m.unit));
  line->setSpacing(qRound(0.6 * m.unit));
  line->addWidget(slice_, 1);
  line->addWidget(scale_);
  layout->addWidget(sliceLine);
  layout->addWidget(problem_);
  makeTable();
  none_->setObjectName(QStringLiteral("tensor_none"));
  none_->setAlignment(Qt::AlignCenter);
  none_->setWordWrap(true);
  none_->setProperty("role", "muted");
  none_->setTextFormat(Qt::PlainText);
  none_->setContentsMargins(m.padding, m.padding, m.padding, m.padding);
  pages_->addWidget(elements_);
  pages_->addWidget(heat_);
  pages_->addWidget(comparison_);
  pages_->addWidget(none_);
  layout->addWidget(pages_, 1);

  connect(tabs_, &QTabBar::currentChanged, this, [this, sliceLine](int page) {
    showPage();
    sliceLine->setVisible(page != kCompare);  // whole tensors are compared
  });
  connect(slice_, &QLineEdit::returnPressed, this, &ElementsPanel::applySlice);
  connect(editor_, &ElementEditor::typed, this, &ElementsPanel::edit);
  connect(editor_, &ElementEditor::notANumber, this, &ElementsPanel::say);
  connect(editor_, &ElementEditor::closeEditor, this, [this] { say({}); });
  connect(&context_.store.findings(), &Findings::editAnswered, this, &ElementsPanel::showEdit);
  connect(comparison_, &ComparePage::elementWanted, this, &ElementsPanel::goTo);
  auto* copyKey = new QShortcut(QKeySequence::Copy, elements_, nullptr, nullptr, Qt::WidgetShortcut);
  connect(copyKey, &QShortcut::activated, this, &ElementsPanel::copy);
}

void ElementsPanel::makeTable() {
  const Metrics m = Metrics::current();
  elements_->setModel(table_);
  elements_->setObjectName(QStringLiteral("tensor_elements"));
  elements_->setAccessibleName(QStringLiteral("Elements"));
  elements_->setFrameShape(QFrame::NoFrame);
  elements_->setItemDelegate(editor_);
  elements_->setTabKeyNavigation(false);  // Tab leaves the table, arrows move in it
  elements_->setEditTriggers(QAbstractItemView::DoubleClicked | QAbstractItemView::EditKeyPressed |
                             QAbstractItemView::AnyKeyPressed);
  elements_->setHorizontalScrollMode(QAbstractItemView::ScrollPerItem);
  elements_->viewport()->installEventFilter(this);
  elements_->setCornerButtonEnabled(false);
  elements_->verticalHeader()->setDefaultSectionSize(qRound(1.6 * m.unit));
  elements_->verticalHeader()->setMinimumSectionSize(qRound(1.6 * m.unit));
  elements_->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  elements_->verticalHeader()->setFont(smallFont());
  elements_->horizontalHeader()->setDefaultSectionSize(qRound(5.2 * m.unit));
  elements_->horizontalHeader()->setFont(smallFont());
  elements_->horizontalHeader()->setFixedHeight(qRound(1.8 * m.unit));
}

// As many whole columns as fit share the place: half a number is a wrong one.
void ElementsPanel::fitColumns() {
  const int least = qRound(5.2 * Metrics::current().unit), room = elements_->viewport()->width();
  const int fitting = std::max(1, room / least);
  elements_->horizontalHeader()->setDefaultSectionSize(table_->columnCount() > fitting ? room / fitting : least);
}

bool ElementsPanel::eventFilter(QObject* watched, QEvent* event) {
  if (watched == elements_->viewport() && event->type() == QEvent::Resize) fitColumns();
  return QWidget::eventFilter(watched, event);
}

void ElementsPanel::setValue(int value, const std::vector<std::int64_t>& dims) {
  const bool another = value != value_ || wanted_.extent.size() != dims.size();
  value_ = value;
  dims_ = dims;
  if (another) {
    wanted_ = Slice::first(dims_, kMostElements);
    goal_.clear();
  }
  comparison_->setValue(value);
}

void ElementsPanel::refresh() {
  TensorValues values(context_.store.tensor(value_));
  Slice slice = wanted_;
  // What came may be another slice than the one wanted now.
  if (values.extent() != slice.extent || values.begin() != slice.begin) {
    slice = Slice::first(values.extent(), kMostElements);
    slice.begin = values.begin();
    slice.extent = values.extent();
  }
  int row = elements_->currentIndex().row(), column = elements_->currentIndex().column();
  table_->setEditable(!context_.store.readOnly() && !scriptDrives(context_.store));
  table_->set(std::move(values), slice);
  fitColumns();
  if (!goal_.empty() && slice.begin == wanted_.begin) {
    row = slice.rowAxis < 0 ? 0
                            : static_cast<int>(goal_[static_cast<std::size_t>(slice.rowAxis)] -
                                               slice.begin[static_cast<std::size_t>(slice.rowAxis)]);
    column = slice.columnAxis < 0 ? 0
                                  : static_cast<int>(goal_[static_cast<std::size_t>(slice.columnAxis)] -
                                                     slice.begin[static_cast<std::size_t>(slice.columnAxis)]);
    goal_.clear();
  }
  if (row >= 0 && row < table_->rowCount() && column < table_->columnCount())
    elements_->setCurrentIndex(table_->index(row, column));
  heat_->show(*table_);
  const TensorPtr& tensor = table_->values().tensor();
  const PlanPtr& plan = context_.store.plan();
  const auto& position = context_.store.position();
  const int producer = plan ? plan->producerOfValue(value_) : -1;
  const auto why = [&] {
    if (table_->rowCount() > 0) return QString();
    if (context_.store.readOnly())
      return QStringLiteral(
          "A recorded project keeps statistics, not elements.\nOpen the model itself (Ctrl+O) to see them.");
    if (!tensor) return QStringLiteral("Reading the elements …");
    if (tensor->unavailable().empty()) return QStringLiteral("This tensor has no elements.");
    if (position.in_step() && producer >= position.instruction())
      return QStringLiteral("No elements yet: instruction %1 computes them.").arg(producer);
    if (takenIn(context_.store, producer) == Taken::kBranchLeftOut)
      return QStringLiteral("No elements: its branch of the If was not taken.");
    if (tensor->elsewhere()) return QStringLiteral("No elements of this step are kept.\nThe line above says why.");
    if (takenIn(context_.store, producer) == Taken::kRan && plan && plan->overwrittenBy(plan->bufferOfValue(value_)) >= 0)
      return QStringLiteral("Its memory was given to another value.\nA pinned value keeps its own.");
    return QStringLiteral("No elements; the line above says why.");
  };
  none_->setText(why());
  showPage();
  if (!slice_->hasFocus()) slice_->setText(slice.text(dims_));
  slice_->setEnabled(!dims_.empty());
  slice_->setPlaceholderText(dims_.empty() ? QStringLiteral("One element: there is nothing to cut") : QString());
  scale_->setText(powerOfTen(table_->exponent()));
  say({});
}

void ElementsPanel::showPage() {
  const int page = tabs_->currentIndex();
  if (page != kCompare && !none_->text().isEmpty()) {
    pages_->setCurrentWidget(none_);
    return;
  }
  const bool back = pages_->currentWidget() == none_;
  pages_->setCurrentIndex(page);
  // The table gets its headers and scroll bars only now that it is seen.
  if (back) QTimer::singleShot(0, this, &ElementsPanel::fitColumns);
}

void ElementsPanel::findSlice() {
  if (tabs_->currentIndex() == kCompare) openPage(kValues);
  slice_->setFocus();
  slice_->selectAll();
}

void ElementsPanel::applySlice() {
  QString error;
  const Slice slice = Slice::parse(slice_->text(), dims_, kMostElements, &error);
  say(error);
  if (!error.isEmpty()) return;
  wanted_ = slice;
  emit sliceWanted();
}

void ElementsPanel::show(const std::vector<qint64>& index) {
  if (index.size() != dims_.size()) return;
  wanted_ = Slice::around({index.begin(), index.end()}, dims_, kMostElements);
  goal_ = index;
  emit sliceWanted();
}

void ElementsPanel::goTo(const std::vector<qint64>& index) {
  if (index.size() != dims_.size()) return;
  openPage(kValues);
  elements_->setFocus();
  show(index);
}

void ElementsPanel::say(const QString& problem) {
  problem_->setText(problem);
  problem_->setVisible(!problem.isEmpty());
}

void ElementsPanel::edit(const QModelIndex& index, double number, const QString& text) {
  typed_ = {value_, table_->position(index), text};
  emit context_.wishes.editElement(value_, typed_.index, number,
                                   elementNumber(index.data(Qt::EditRole).toString()).value_or(0));
}

// Refused: the cell opens again with what was typed, and the reason stands above the table.
void ElementsPanel::showEdit() {
  const EditAnswer& answer = context_.store.findings().edit();
  if (answer.problem.isEmpty() || answer.value != value_ || typed_.value != value_ || answer.index != typed_.index) return;
  const Slice& slice = table_->slice();
  const auto place = [&](int axis) {
    return axis < 0 ? 0
                    : static_cast<int>(typed_.index[static_cast<std::size_t>(axis)] -
                                       slice.begin[static_cast<std::size_t>(axis)]);
  };
  const QModelIndex index = table_->index(place(slice.rowAxis), place(slice.columnAxis));
  if (slice.begin.size() != typed_.index.size() || !index.isValid() || table_->position(index) != typed_.index) return;
  editor_->refuse(index, typed_.text, answer.problem);
  elements_->setCurrentIndex(index);
  elements_->edit(index);
  say(format::visible(answer.problem));
}

void ElementsPanel::copy() {
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
}

}  // namespace stepscope

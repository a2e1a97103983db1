// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/instructions/instructions_view.h"

#include <QApplication>
#include <QClipboard>
#include <QMenu>
#include <QMouseEvent>
#include <QScrollBar>
#include <QShortcut>
#include <QStyle>
#include <QVBoxLayout>

#include "views/common/format.h"
#include "views/common/tokens.h"
#include "views/instructions/instruction_delegate.h"

namespace stepscope {
namespace {

// A list whose gutter toggles breakpoints.
class GutterList : public QListView {
 public:
  std::function<void(const QModelIndex&)> toggled;

 protected:
  void mousePressEvent(QMouseEvent* event) override {
    const QModelIndex at = indexAt(event->pos());
    if (event->button() == Qt::LeftButton && at.isValid() && event->pos().x() < InstructionDelegate::gutterWidth()) {
      toggled(at);
      return;
    }
    QListView::mousePressEvent(event);
  }
  // Keys go over the headings of phases: nothing can be done to one.
  QModelIndex moveCursor(CursorAction action, Qt::KeyboardModifiers modifiers) override {
    const QModelIndex next = QListView::moveCursor(action, modifiers);
    if (!next.isValid() || next.data(InstructionModel::kKindRole).toInt() == InstructionModel::kInstruction) return next;
    const bool up = action == MoveUp || action == MovePageUp || action == MovePrevious || action == MoveEnd;
    const QModelIndex beyond = next.siblingAtRow(next.row() + (up ? -1 : 1));
    return beyond.isValid() ? beyond : currentIndex();
  }
  // A panel that gets lower keeps the chosen line in sight.
  void resizeEvent(QResizeEvent* event) override {
    const QRect chosen = visualRect(currentIndex());
    const bool seen = chosen.isValid() && chosen.top() >= 0 && chosen.bottom() < event->oldSize().height();
    QListView::resizeEvent(event);
    if (seen) scrollTo(currentIndex(), EnsureVisible);
  }
};

}  // namespace

InstructionsView::InstructionsView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("instructions"), QStringLiteral("Instructions"), parent),
      model_(new InstructionModel(context.store, this)),
      filter_(new QLineEdit),
      problem_(new QLabel) {
  const Metrics m = Metrics::current();
  auto* gutterList = new GutterList;
  list_ = gutterList;
  filter_->setPlaceholderText(QStringLiteral("Filter: op:MatMul  bytes>1MiB  phase:backward"));
  filter_->setToolTip(InstructionFilter::help());
  filter_->setClearButtonEnabled(true);
  filter_->setAccessibleName(QStringLiteral("Filter of instructions"));
  filter_->setObjectName(QStringLiteral("instruction_filter"));
  problem_->setProperty("role", "error");
  problem_->setTextFormat(Qt::PlainText);
  problem_->setWordWrap(true);
  problem_->setFont(smallFont());
  problem_->hide();
  list_->setObjectName(QStringLiteral("instruction_list"));
  list_->setAccessibleName(QStringLiteral("Instructions"));
  list_->setModel(model_);
  list_->setItemDelegate(new InstructionDelegate(selection(), this));
  list_->setUniformItemSizes(true);
  list_->setMouseTracking(true);
  list_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  list_->setContextMenuPolicy(Qt::CustomContextMenu);
  list_->setFrameShape(QFrame::NoFrame);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  auto* top = new QVBoxLayout;
  top->setContentsMargins(qRound(0.6 * m.unit), qRound(0.45 * m.unit), qRound(0.6 * m.unit), qRound(0.45 * m.unit));
  top->addWidget(filter_);
  top->addWidget(problem_);
  layout->addLayout(top);
  layout->addWidget(list_, 1);
  setFocusProxy(list_);

  connect(filter_, &QLineEdit::textChanged, this, &InstructionsView::applyFilter);
  connect(filter_, &QLineEdit::returnPressed, list_, qOverload<>(&QWidget::setFocus));
  gutterList->toggled = [this](const QModelIndex& at) {
    if (at.data(InstructionModel::kKindRole).toInt() == InstructionModel::kInstruction) {
      emit wishes().toggleBreakpoint(at.data(InstructionModel::kIndexRole).toInt());
    }
  };
  // A list that gets the keyboard has a current line without anybody having chosen one. A key selects a line before it
  // becomes the current one, the mouse after it.
  const auto choose = [this] {
    const QModelIndex now = list_->currentIndex();
    if (selecting_ || !now.isValid() || !list_->selectionModel()->isSelected(now) ||
        now.data(InstructionModel::kKindRole).toInt() != InstructionModel::kInstruction)
      return;
    selecting_ = true;
    selection().select(Selection::ofInstruction(now.data(InstructionModel::kIndexRole).toInt()));
    selecting_ = false;
  };
  connect(list_->selectionModel(), &QItemSelectionModel::currentChanged, this, choose);
  connect(list_, &QListView::clicked, this, choose);
  connect(list_, &QListView::doubleClicked, this, [this](const QModelIndex& at) {
    if (at.data(InstructionModel::kKindRole).toInt() == InstructionModel::kInstruction) {
      emit wishes().runTo(at.data(InstructionModel::kIndexRole).toInt());
    }
  });
  connect(list_, &QWidget::customContextMenuRequested, this, &InstructionsView::showMenu);
  connect(&selection(), &SelectionModel::selectionChanged, this, [this] { showSelection(false); });
  connect(&selection(), &SelectionModel::currentInstructionChanged, this, [this] { list_->viewport()->update(); });
  connect(model_, &QAbstractItemModel::modelReset, this, [this] {
    emit headerChanged();
    emit emptyChanged();
    showSelection(true);
  });
}

QString InstructionsView::headerText() const {
  const int all = store().plan() ? store().plan()->size() : 0;
  if (all == 0) return {};
  return model_->matching() == all ? format::count(all)
                                   : QStringLiteral("%1 of %2").arg(format::count(model_->matching()), format::count(all));
}

QString InstructionsView::emptyText() const {
  if (store().plan()) return {};
  if (store().model()) return QStringLiteral("The model is read but not built. Build it to see its instructions.");
  return QStringLiteral("No model is open.\nOpen one (Ctrl+O): its execution plan appears here.");
}

void InstructionsView::find() {
  filter_->setFocus();
  filter_->selectAll();
}

void InstructionsView::focusSelection() { showSelection(true); }

void InstructionsView::applyFilter() {
  QString error;
  const InstructionFilter filter = InstructionFilter::parse(filter_->text(), &error);
  problem_->setText(error);
  problem_->setVisible(!error.isEmpty());
  filter_->setProperty("invalid", !error.isEmpty());
  filter_->style()->unpolish(filter_);
  filter_->style()->polish(filter_);
  if (!error.isEmpty()) return;
  model_->setFilter(filter);
  if (model_->matching() == 0 && store().plan()) {
    problem_->setText(QStringLiteral("No match among %1 instructions").arg(format::count(store().plan()->size())));
    problem_->show();
  }
}

void InstructionsView::showSelection(bool centre) {
  list_->viewport()->update();
  const int row = model_->rowOf(selection().selection().instruction);
  if (row < 0) return;
  const QModelIndex at = model_->index(row);
  const bool mine = selecting_;
  // Asked before: becoming the current line scrolls it in at the edge, with what comes next still hidden.
  const auto isSeen = [&](int line) {
    return line < 0 || list_->viewport()->rect().contains(list_->visualRect(model_->index(line)));
  };
  // A move chooses what ran last; the cursor is at the one behind it.
  const auto& position = store().position();
  const bool moved = position.in_step() && position.instruction() == selection().selection().instruction + 1;
  const bool seen = isSeen(row) && (mine || !moved || isSeen(model_->rowOf(position.instruction())));
  selecting_ = true;
  list_->setCurrentIndex(at);
  selecting_ = mine;
  if (centre || !seen) {
    list_->scrollTo(at, mine ? QAbstractItemView::EnsureVisible : QAbstractItemView::PositionAtCenter);
  }
}

void InstructionsView::showMenu(const QPoint& at) {
  const QModelIndex index = list_->indexAt(at);
  if (!index.isValid() || index.data(InstructionModel::kKindRole).toInt() != InstructionModel::kInstruction) return;
  const int instruction = index.data(InstructionModel::kIndexRole).toInt();
  const InstructionModel::Line line = model_->line(index.row());
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  menu->addAction(QStringLiteral("Run to here\tCtrl+F10"), this, [this, instruction] { emit wishes().runTo(instruction); });
  menu->addAction(QStringLiteral("Breakpoint\tF9"), this,
                  [this, instruction] { emit wishes().toggleBreakpoint(instruction); });
  menu->addAction(QStringLiteral("Break on every %1").arg(line.op), this, [this, instruction] {
    snapshot::Breakpoint b;
    b.set_op(store().plan()->plan().instructions(instruction).op());
    b.set_enabled(true);
    emit wishes().addBreakpoint(b);
  });
  menu->addSeparator();
  menu->addAction(QStringLiteral("Show only %1").arg(line.op), this,
                  [this, line] { filter_->setText(QStringLiteral("op:") + line.op); });
  menu->addAction(QStringLiteral("Copy line"), this,
                  [index] { QApplication::clipboard()->setText(index.data().toString()); });
  menu->popup(list_->viewport()->mapToGlobal(at));
}

QString InstructionsView::saveState() const { return filter_->text(); }
void InstructionsView::restoreState(const QString& state) { filter_->setText(state.left(500)); }

}  // namespace stepscope

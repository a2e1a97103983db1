// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/memory/memory_view.h"

#include <QMenu>
#include <QVBoxLayout>

#include "views/common/counted_steps.h"
#include "views/common/format.h"
#include "views/common/script_drives.h"

namespace stepscope {

MemoryView::MemoryView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("memory"), QStringLiteral("Memory"), parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  canvas_ = new MemoryCanvas(this);
  canvas_->setObjectName(QStringLiteral("memory_map"));
  column->addWidget(canvas_, 1);
  ranks_ = new RankStrip(this);
  column->addWidget(ranks_);
  const auto showRanks = [this] { ranks_->setRanks(RankTimes::of(store().project()).table().ranks); };
  connect(&RankTimes::of(store().project()), &RankTimes::changed, this, showRanks);
  showRanks();
  setFocusProxy(canvas_);
  connect(&store(), &SnapshotStore::planChanged, this, &MemoryView::planChanged);
  connect(&store(), &SnapshotStore::stepsChanged, this, &MemoryView::stepsChanged);
  connect(&store(), &SnapshotStore::modelChanged, this, &View::emptyChanged);
  connect(&selection(), &SelectionModel::selectionChanged, this, &MemoryView::showSelection);
  connect(&selection(), &SelectionModel::currentInstructionChanged, canvas_, &MemoryCanvas::setCurrent);
  connect(canvas_, &AxisCanvas::clicked, this, [this](QPointF pixel) {
    const int buffer = canvas_->bufferAt(pixel), instruction = canvas_->instructionAt(pixel);
    if (buffer >= 0) {
      selection().select(Selection::ofBuffer(buffer));
    } else if (instruction >= 0) {
      selection().select(Selection::ofInstruction(instruction));
    }
  });
  connect(canvas_, &AxisCanvas::doubleClicked, this,
          [this](QPointF pixel) { canvas_->showBuffer(canvas_->bufferAt(pixel)); });
  connect(canvas_, &AxisCanvas::menuWanted, this, &MemoryView::showMenu);
  planChanged();
}

QString MemoryView::headerText() const {
  if (!store().plan()) return {};
  const snapshot::Plan& plan = store().plan()->plan();
  QString text = QStringLiteral("planned %1").arg(format::bytes(plan.persistent_bytes() + plan.arena_bytes()));
  // What placing costs above the lower bound, which the map names: no instruction needs it, and nothing else can have it.
  const std::int64_t lost = plan.arena_bytes() - plan.lower_bound_bytes();
  text += lost > 0 ? QStringLiteral(" · fragmentation %1, %2")
                         .arg(format::bytes(lost),
                              format::percent(static_cast<double>(lost), static_cast<double>(plan.arena_bytes())))
                   : QStringLiteral(" · no fragmentation");
  const snapshot::StepRecord* measured = newestOfPlan(store());
  if (measured && measured->peak_bytes() > 0)
    text += QStringLiteral(" · measured %1").arg(format::bytes(measured->peak_bytes()));
  return text;
}

QString MemoryView::emptyText() const {
  if (store().plan()) return {};
  return store().model()
             ? QStringLiteral(
                   "No plan yet. Build the training step (Ctrl+Shift+O); the map shows its memory before anything runs.")
             : QStringLiteral(
                   "No model is open. Open one (Ctrl+O); the map shows the memory of its training step before anything "
                   "runs.");
}

void MemoryView::planChanged() {
  canvas_->setModel(store().plan() ? MemoryModel::make(store().plan()) : nullptr);
  canvas_->setCurrent(selection().currentInstruction());
  stepsChanged();
  showSelection();
  emit emptyChanged();
}

void MemoryView::stepsChanged() {
  const snapshot::StepRecord* measured = newestOfPlan(store());
  canvas_->setMeasured(measured ? measured->peak_bytes() : 0);
  emit headerChanged();
}

void MemoryView::showSelection() {
  const Selection& s = selection().selection();
  int buffer = s.buffer, instruction = s.instruction;
  if (store().plan()) {
    if (buffer < 0 && s.value >= 0) buffer = store().plan()->bufferOfValue(s.value);
    if (instruction < 0 && s.node >= 0) instruction = store().plan()->instructionOfNode(s.node);
    if (const snapshot::Instruction* in = buffer < 0 ? store().plan()->instruction(instruction) : nullptr;
        in != nullptr && in->outputs_size() > 0) {
      buffer = in->outputs(0).buffer();
    }
  }
  canvas_->setSelected(buffer, instruction);
}

void MemoryView::focusSelection() {
  const Selection& s = selection().selection();
  int buffer = s.buffer;
  if (buffer < 0 && store().plan()) buffer = store().plan()->bufferOfValue(s.value);
  canvas_->showBuffer(buffer);
}

void MemoryView::fitAll() { canvas_->fitAll(); }
void MemoryView::drawPicture(QPainter& painter) { canvas_->paintOn(painter); }

void MemoryView::showMenu(QPointF pixel, const QPoint& at) {
  const int instruction = canvas_->instructionAt(pixel), buffer = canvas_->bufferAt(pixel);
  if (instruction < 0) return;
  QMenu menu(this);
  menu.setToolTipsVisible(true);
  if (buffer >= 0) {
    selection().select(Selection::ofBuffer(buffer));
    menu.addAction(QStringLiteral("Zoom to this buffer\tF"), this, [this, buffer] { canvas_->showBuffer(buffer); })
        ->setObjectName(QStringLiteral("memory_focus"));
    const int value = store().plan()->buffer(buffer)->value();
    if (value >= 0) {
      QAction* pin = menu.addAction(QStringLiteral("Pin: keep its memory to itself"), this,
                                    [this, value] { emit wishes().pin(value, true); });
      pin->setObjectName(QStringLiteral("memory_pin"));
      allow(store(), pin, true);
    }
    menu.addSeparator();
  }
  menu.addAction(QStringLiteral("Select instruction %1").arg(format::count(instruction)), this,
                 [this, instruction] { selection().select(Selection::ofInstruction(instruction)); })
      ->setObjectName(QStringLiteral("memory_select"));
  QAction* run = menu.addAction(QStringLiteral("Run to %1").arg(format::count(instruction)), this,
                                [this, instruction] { emit wishes().runTo(instruction); });
  run->setObjectName(QStringLiteral("memory_run_to"));
  run->setEnabled(!store().readOnly());
  menu.addSeparator();
  menu.addAction(QStringLiteral("Show all\tSpace"), this, [this] { fitAll(); })->setObjectName(QStringLiteral("memory_fit"));
  menu.exec(at);
}

}  // namespace stepscope

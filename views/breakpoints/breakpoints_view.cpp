// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/breakpoints/breakpoints_view.h"

#include <QAbstractItemView>
#include <QCompleter>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QMenu>
#include <QPushButton>
#include <QVBoxLayout>
#include <set>

#include "views/common/conditions.h"
#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {
enum Kind { kOp, kPredicate, kPhase, kInstruction };
constexpr int kMostOffers = 100;
constexpr snapshot::Phase kPhases[] = {snapshot::FORWARD, snapshot::BACKWARD, snapshot::RECOMPUTE, snapshot::OPTIMIZER};
}  // namespace

BreakpointsView::BreakpointsView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("breakpoints"), QStringLiteral("Breakpoints"),
                 {{QStringLiteral("No."), QStringLiteral("The number that messages name it by"), true, 3},
                  {QStringLiteral("State"),
                   QStringLiteral("On or off; a double click or the space bar switches it, Del removes it"), false, 4},
                  {QStringLiteral("Stops"), QStringLiteral("What has to be true for a run to stop"), false, 20}},
                 parent),
      kind_(new QComboBox),
      text_(new QLineEdit),
      problem_(new QLabel) {
  const Metrics m = Metrics::current();
  kind_->addItems(
      {QStringLiteral("operator"), QStringLiteral("condition"), QStringLiteral("phase"), QStringLiteral("instruction")});
  kind_->setAccessibleName(QStringLiteral("Kind of breakpoint"));
  text_->setAccessibleName(QStringLiteral("What to break on"));
  const QStringList hints = {QStringLiteral("MatMul"), QStringLiteral("loss max > 10"), QStringLiteral("backward"),
                             QStringLiteral("390")};
  text_->setPlaceholderText(hints[0]);
  text_->setObjectName(QStringLiteral("breakpoint_text"));
  kind_->setObjectName(QStringLiteral("breakpoint_kind"));
  connect(kind_, &QComboBox::currentIndexChanged, this, [this, hints](int i) {
    text_->setPlaceholderText(hints.value(i));
    refuse({});
  });
  auto* completer = new QCompleter(&offers_, this);
  completer->setCompletionMode(QCompleter::UnfilteredPopupCompletion);
  completer->popup()->setObjectName(QStringLiteral("breakpoint_offers"));
  completer->popup()->setAccessibleName(QStringLiteral("What can stand here"));
  text_->setCompleter(completer);
  connect(text_, &QLineEdit::textEdited, this, [this] {
    refuse({});
    offers_.setStringList(offers(text_->text()));
  });
  // A word of a condition is followed by the next one.
  connect(completer, qOverload<const QString&>(&QCompleter::activated), this, &BreakpointsView::offer, Qt::QueuedConnection);
  problem_->setObjectName(QStringLiteral("breakpoint_problem"));
  problem_->setProperty("role", "error");
  problem_->setWordWrap(true);
  problem_->setTextFormat(Qt::PlainText);
  problem_->setContentsMargins(m.padding, 0, m.padding, qRound(0.5 * m.unit));
  problem_->hide();
  auto* line = new QHBoxLayout;
  line->setContentsMargins(m.padding, qRound(0.5 * m.unit), m.padding, qRound(0.5 * m.unit));
  line->setSpacing(qRound(0.5 * m.unit));
  auto* button = new QPushButton(QStringLiteral("Add"));
  kind_->setToolTip(QStringLiteral(
      "What a run stops at: every node of an operator, a condition on a tensor, the begin of a phase, one instruction"));
  button->setToolTip(QStringLiteral("Adds this breakpoint"));
  line->addWidget(kind_);
  line->addWidget(text_, 1);
  line->addWidget(button);
  body()->addLayout(line);
  body()->addWidget(problem_);
  connect(button, &QPushButton::clicked, this, &BreakpointsView::add);
  connect(text_, &QLineEdit::returnPressed, this, [this] {
    if (kind_->currentIndex() == kPredicate && text_->text().endsWith(' ')) return offer();  // a word was taken, not all
    add();
  });
  connect(&store().findings(), &Findings::refusedBreakpointChanged, this, &BreakpointsView::showRefused);
  table()->installEventFilter(this);
  connect(&store(), &SnapshotStore::breakpointsChanged, this, &BreakpointsView::refillLater);
  connect(&store(), &SnapshotStore::planChanged, this, &BreakpointsView::refillLater);
}

void BreakpointsView::add() {
  const QString text = text_->text().trimmed();
  snapshot::Breakpoint b;
  b.set_enabled(true);
  if (text.isEmpty()) return;
  switch (kind_->currentIndex()) {
    case kOp: b.set_op(text.toStdString()); break;
    case kPredicate: b.set_predicate(text.toStdString()); break;
    case kPhase: {
      const auto* found = std::ranges::find_if(
          kPhases, [&text](auto phase) { return names::phase(phase).compare(text, Qt::CaseInsensitive) == 0; });
      if (found == std::end(kPhases))
        return refuse(QStringLiteral("phase '%1': unknown; expected forward, backward, recompute or optimizer").arg(text));
      b.set_phase(*found);
      break;
    }
    default: {
      bool ok = false;
      const int n = text.toInt(&ok);
      if (!ok || !store().plan() || !store().plan()->instruction(n))
        return refuse(store().plan()
                          ? QStringLiteral("instruction '%1': expected a number from 0 to %2")
                                .arg(text, format::count(store().plan()->size() - 1))
                          : QStringLiteral("instruction '%1': there is no plan yet; build the model first").arg(text));
      b.set_instruction(n);
    }
  }
  refuse({});
  text_->clear();
  emit wishes().addBreakpoint(b);
}

void BreakpointsView::refuse(const QString& why) {
  problem_->setText(why);
  problem_->setVisible(!why.isEmpty());
}

void BreakpointsView::showRefused() {
  const auto& refused = store().findings().refusedBreakpoint();
  if (!refused) return refuse({});
  const QString condition = QString::fromStdString(refused->breakpoint.predicate());
  // What was typed since is not thrown away.
  if (text_->text().isEmpty()) {
    kind_->setCurrentIndex(kPredicate);
    text_->setText(condition);
  }
  refuse(refused->problem);
}

QStringList BreakpointsView::offers(const QString& typed) const {
  const auto begun = [&typed](const QString& word) { return word.startsWith(typed.trimmed(), Qt::CaseInsensitive); };
  QStringList words;
  if (!store().graph() || typed.trimmed().isEmpty()) return words;
  switch (kind_->currentIndex()) {
    case kPredicate: return conditions::completions(typed, *store().graph(), kMostOffers);
    case kPhase:
      for (const auto phase : kPhases)
        if (const QString name = names::phase(phase).toLower(); begun(name)) words << name;
      break;
    case kOp: {
      std::set<std::string> ops;
      for (const auto& node : store().graph()->graph().nodes()) ops.insert(node.op());
      for (const std::string& op : ops)
        if (const QString name = QString::fromStdString(op); begun(name)) words << name;
      break;
    }
    default: break;
  }
  return words;
}

void BreakpointsView::offer() {
  offers_.setStringList(offers(text_->text()));
  if (kind_->currentIndex() == kPredicate && offers_.rowCount() > 0) text_->completer()->complete();
}

void BreakpointsView::refill() {
  std::vector<TableRow> rows;
  for (const auto& b : store().breakpoints()) {
    TableRow row;
    row.key = b.id();
    QString what;
    switch (b.condition_case()) {
      case snapshot::Breakpoint::kNode:
        what = store().graph() ? names::node(*store().graph(), b.node()) : QStringLiteral("node %1").arg(b.node());
        row.target = Selection::ofNode(b.node());
        break;
      case snapshot::Breakpoint::kOp: what = QStringLiteral("before every %1").arg(format::visible(b.op())); break;
      case snapshot::Breakpoint::kPhase:
        what = QStringLiteral("at the start of %1").arg(names::phase(b.phase()).toLower());
        break;
      case snapshot::Breakpoint::kNan: what = QStringLiteral("any NaN in an output"); break;
      case snapshot::Breakpoint::kNewInf: what = QStringLiteral("an infinity that no infinite constant explains"); break;
      case snapshot::Breakpoint::kPredicate: what = QStringLiteral("when %1").arg(format::visible(b.predicate())); break;
      case snapshot::Breakpoint::kInstruction: {
        const auto* in = store().plan() ? store().plan()->instruction(b.instruction()) : nullptr;
        what = QStringLiteral("before %1").arg(b.instruction());
        if (in) what += QStringLiteral("  ") + format::visible(in->label());
        row.target = Selection::ofInstruction(b.instruction());
        break;
      }
      default: what = QStringLiteral("an unknown condition");
    }
    TableCell state(b.enabled() ? QStringLiteral("● on") : QStringLiteral("○ off"));
    state.role = b.enabled() ? QStringLiteral("error") : QStringLiteral("faint");
    row.cells = {{QString::number(b.id()), b.id(), {}}, state, {what, what, what}};
    rows.push_back(std::move(row));
  }
  setRows(std::move(rows));
}

void BreakpointsView::activated(int row) {
  const auto id = model().row(row).key;
  for (const auto& b : store().breakpoints()) {
    if (b.id() == id) {
      emit wishes().enableBreakpoint(static_cast<int>(id), !b.enabled());
      return;
    }
  }
}

bool BreakpointsView::eventFilter(QObject* watched, QEvent* event) {
  // The window has keys of its own, which come first unless this is told.
  const bool asked = event->type() == QEvent::ShortcutOverride;
  const int row = watched == table() && (asked || event->type() == QEvent::KeyPress) ? chosenRow() : -1;
  const int key = row < 0 ? 0 : static_cast<QKeyEvent*>(event)->key();
  if (key != Qt::Key_Space && key != Qt::Key_Delete) return TablePanel::eventFilter(watched, event);
  if (asked)
    event->accept();
  else if (key == Qt::Key_Space)
    activated(row);
  else
    emit wishes().removeBreakpoint(static_cast<int>(model().row(row).key));
  return true;
}

void BreakpointsView::fillMenu(QMenu& menu, int row) {
  const int id = static_cast<int>(model().row(row).key);
  menu.addAction(QStringLiteral("Switch on or off"), this, [this, row] { activated(row); });
  menu.addAction(QStringLiteral("Remove"), this, [this, id] { emit wishes().removeBreakpoint(id); });
  menu.addSeparator();
}

}  // namespace stepscope

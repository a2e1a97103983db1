// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/options/options_view.h"

#include <QHBoxLayout>
#include <QLineEdit>
#include <QMenu>
#include <QStyle>
#include <QVBoxLayout>
#include <algorithm>
#include <numeric>

#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/tokens.h"

namespace stepscope {

OptionsView::OptionsView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("options"), tr("Optimisations"),
                 {{tr("Option"), tr("Name, as for --set NAME=VALUE"), false, 13},
                  {tr("Value"), tr("Present value; double-click or Enter switches"), false, 5},
                  {tr("Set by"), tr("Who set it: default, command line, project, window"), false, 7},
                  {tr("Effect"), tr("What it changed in this build: nodes, bytes, time"), false, 16}},
                 parent),
      name_(new QLabel),
      doc_(new QLabel),
      proof_(new QLabel),
      value_(new QComboBox),
      reset_(new QPushButton(tr("Default"))) {
  const Metrics m = Metrics::current();
  setFilterPlaceholder(tr("Filter options"));
  auto* line = new QFrame;
  line->setProperty("role", "line");
  line->setFixedHeight(1);
  body()->addWidget(line);
  auto* below = new QVBoxLayout;
  below->setContentsMargins(m.padding, qRound(0.6 * m.unit), m.padding, qRound(0.6 * m.unit));
  below->setSpacing(qRound(0.4 * m.unit));
  auto* top = new QHBoxLayout;
  name_->setTextFormat(Qt::PlainText);
  QFont strong = font();
  strong.setWeight(QFont::DemiBold);
  name_->setFont(strong);
  name_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  doc_->setTextFormat(Qt::PlainText);
  doc_->setWordWrap(true);
  doc_->setProperty("role", "muted");
  value_->setAccessibleName(tr("Value"));
  value_->setToolTip(tr(
      "The value: at once what decides only how a step is run, other settings from the next step on; Undo takes it back"));
  reset_->setToolTip(tr("Back to the default value"));
  value_->setMinimumWidth(6 * m.unit);
  below->addWidget(name_);
  top->addWidget(value_, 1);
  top->addWidget(reset_);
  below->addLayout(top);
  below->addWidget(doc_);
  proof_->setTextFormat(Qt::PlainText);
  proof_->setWordWrap(true);
  proof_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  proof_->setToolTip(
      tr("The coming step was run with the plan before the last change and with the one after it, from one state: what it "
         "leaves behind, compared bit for bit"));
  proof_->hide();
  below->addWidget(proof_);
  body()->addLayout(below);
  connect(&store().findings(), &Findings::optionProofChanged, this, [this] {
    QString role;
    proof_->setText(store().findings().optionProofText(&role));
    proof_->setVisible(!proof_->text().isEmpty());
    proof_->setProperty("role", role);
    proof_->style()->unpolish(proof_);  // the role is read again
    proof_->style()->polish(proof_);
  });
  connect(&store(), &SnapshotStore::optionsChanged, this, &OptionsView::refillLater);
  connect(table()->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &OptionsView::showChosen);
  const auto send = [this](const QString& text) {
    const auto* o = option(chosenRow());
    if (!filling_ && o && text != QString::fromStdString(o->value()))
      emit wishes().setOption(QString::fromStdString(o->name()), text);
  };
  connect(value_, &QComboBox::textActivated, this, send);
  connect(reset_, &QPushButton::clicked, this, [this, send] {
    if (const auto* o = option(chosenRow())) send(QString::fromStdString(o->default_value()));
  });
}

QString OptionsView::emptyText() const {
  return store().options().empty()
             ? tr("No options yet.\nOpen a model (Ctrl+O): every optimisation of its build appears here with its switch.")
             : QString();
}

const snapshot::Option* OptionsView::option(int row) const {
  if (row < 0 || row >= model().rowCount()) return nullptr;
  const auto at = static_cast<std::size_t>(model().row(row).key);
  return at < store().options().size() ? &store().options()[at] : nullptr;
}

void OptionsView::refill() {
  const int chosen = chosenRow();
  std::vector<TableRow> rows;
  // What changes the build first; the settings of the training after it.
  std::vector<std::size_t> order(store().options().size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
    const auto rank = [](const std::string& n) {
      return n.starts_with("pass.") ? 0 : n.starts_with("memory.") || n == "kernels" ? 1 : 2;
    };
    return rank(store().options()[a].name()) < rank(store().options()[b].name());
  });
  for (const std::size_t i : order) {
    const auto& o = store().options()[i];
    const QString value = format::visible(o.value()), doc = format::visible(o.doc()),
                  effect = format::bytesWithin(format::visible(o.effect()));
    TableRow row;
    row.key = static_cast<qint64>(i);
    TableCell state(o.value() == "on"    ? QStringLiteral("✓ on")
                    : o.value() == "off" ? QStringLiteral("– off")
                                         : value,
                    value);
    state.role = o.value() == "on" ? QStringLiteral("ok") : o.value() == "off" ? QStringLiteral("muted") : QString();
    TableCell by(format::visible(o.set_by()));
    by.role = o.set_by() == "default" ? QStringLiteral("faint") : QStringLiteral("accent");
    TableCell did(effect, effect, effect.isEmpty() ? tr("It changed nothing in this build") : effect);
    did.role = QStringLiteral("muted");
    row.cells = {{format::visible(o.name()), format::visible(o.name()), doc}, state, by, did};
    rows.push_back(std::move(row));
  }
  setRows(std::move(rows));
  if (model().rowCount() > 0) table()->selectRow(std::clamp(chosen, 0, model().rowCount() - 1));
  showChosen();
}

void OptionsView::showChosen() {
  const auto* o = option(chosenRow());
  filling_ = true;
  value_->clear();
  value_->setEnabled(o != nullptr && !store().readOnly());
  reset_->setEnabled(o && o->value() != o->default_value() && !store().readOnly());
  name_->setText(o ? format::visible(o->name()) : QString());
  QString doc = o ? format::visible(o->doc()) : QString();
  if (o && !o->default_value().empty()) doc += tr(". Default: %1.").arg(format::visible(o->default_value()));
  doc_->setText(doc);
  if (o) {
    value_->setEditable(o->choices().empty());
    for (const auto& c : o->choices()) value_->addItem(QString::fromStdString(c));
    if (o->choices().empty()) {
      value_->setEditText(QString::fromStdString(o->value()));
    } else {
      value_->setCurrentText(QString::fromStdString(o->value()));
    }
  }
  filling_ = false;
}

void OptionsView::activated(int row) {
  const auto* o = option(row);
  if (!o || o->choices_size() < 2 || store().readOnly()) return;
  int at = 0;
  for (int i = 0; i < o->choices_size(); ++i) at = o->choices(i) == o->value() ? i : at;
  emit wishes().setOption(QString::fromStdString(o->name()),
                          QString::fromStdString(o->choices((at + 1) % o->choices_size())));
}

void OptionsView::fillMenu(QMenu& menu, int row) {
  const auto* o = option(row);
  if (!o || store().readOnly()) return;
  for (const auto& c : o->choices()) {
    QAction* action = menu.addAction(format::visible(c), this,
                                     [this, name = QString::fromStdString(o->name()), value = QString::fromStdString(c)] {
                                       emit wishes().setOption(name, value);
                                     });
    action->setCheckable(true);
    action->setChecked(c == o->value());
  }
  menu.addSeparator();
}

}  // namespace stepscope

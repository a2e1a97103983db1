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
#include "views/common/text_line.h"
#include "views/common/tokens.h"
#include "views/options/switch_delegate.h"

namespace stepscope {
namespace {

constexpr const char* kGroups[] = {"Passes", "Memory", "Recompute", "Running", "Training"};

// Index into kGroups: what changes the build first, the settings of the training last.
int groupOf(const std::string& name) {
  if (name.starts_with("pass.")) return 0;
  if (name.starts_with("memory.")) return 1;
  if (name.starts_with("recompute.")) return 2;
  for (const char* running : {"kernels", "threads", "precision", "deterministic", "subnormals", "device", "cuda"})
    if (name == running || name.starts_with(running + std::string("."))) return 3;
  return 4;
}

// What the pass saves in one step of this build, by its operands and the roofline.
TableCell savedCell(const SnapshotStore& store, const std::string& option) {
  for (const auto& phase : store.phases()) {
    if (!phase.has_pass() || "pass." + phase.pass().name() != option || !phase.pass().has_effect()) continue;
    const snapshot::PassEffect& e = phase.pass().effect();
    if (e.saved_bytes() == 0 && !(e.saved_ns() > 0)) return {};
    const auto ns = static_cast<std::int64_t>(std::clamp(e.saved_ns(), -9e18, 9e18));
    QStringList words;
    if (ns != 0) words << format::time(ns);
    if (e.saved_bytes() != 0) words << format::bytes(e.saved_bytes());
    return {
        words.join(QStringLiteral(", ")), QVariant::fromValue<qint64>(e.saved_bytes()),
        QStringLiteral("In one step: %1 of memory traffic%2")
            .arg(format::bytesExact(e.saved_bytes()),
                 ns != 0 ? QStringLiteral(", %1 by the roofline of this machine").arg(format::timeExact(ns)) : QString())};
  }
  return {};
}

// The newest trial of another value of the option.
TableCell measuredCell(const snapshot::TrialsReport& report, const snapshot::Option& option) {
  for (const auto& t : report.trials()) {
    if (t.option() != option.name() || t.to() == option.value()) continue;
    if (t.identical()) {
      TableCell cell(QStringLiteral("no effect"), 1.0,
                     QStringLiteral("With %1 the plan is the same").arg(format::visible(t.to())));
      cell.role = QStringLiteral("faint");
      return cell;
    }
    if (t.rounds() == 0) continue;
    const auto percent = [](double ratio) { return format::change(1, ratio); };
    TableCell cell(
        QStringLiteral("%1: %2").arg(format::visible(t.to()), percent(t.ratio())), t.ratio(),
        QStringLiteral("With %1 a step takes %2 of time, 95 % between %3 and %4; %5")
            .arg(format::visible(t.to()), percent(t.ratio()), percent(t.low()), percent(t.high()),
                 t.verdict() == "same"        ? QStringLiteral("no difference that was found")
                 : t.verdict() == "not shown" ? QStringLiteral("not enough to show a difference among so many changes")
                                              : format::visible(t.verdict())));
    cell.role = t.verdict() == "faster"   ? QStringLiteral("ok")
                : t.verdict() == "slower" ? QStringLiteral("muted")
                                          : QStringLiteral("faint");
    return cell;
  }
  return {};
}

// A size has its unit.
QString valueText(const snapshot::Option& option, const std::string& value) {
  const QString text = QString::fromStdString(value);
  if (const auto bytes = format::bytesOf(text); option.kind() == "bytes" && bytes && *bytes > 0)
    return format::bytes(*bytes);
  return format::visible(text);
}

// Of an attached script, which drives: the window changes none.
bool isOfScript(const snapshot::Option* option) { return option != nullptr && option->set_by() == "script"; }

}  // namespace

OptionsView::OptionsView(const ViewContext& context, QWidget* parent)
    : TablePanel(
          context, QStringLiteral("options"), QStringLiteral("Options"),
          {{QStringLiteral("Option"), QStringLiteral("Name, as for --set NAME=VALUE"), false, 13},
           {QStringLiteral("Value"),
            QStringLiteral("Present value; a click on a switch turns it, Enter goes to the next value"), false, 7},
           {QStringLiteral("Set by"),
            QStringLiteral("Who set it: default, command line, project, window; script: one that is attached, and drives"),
            false, 7},
           {QStringLiteral("Group"), QStringLiteral("What it changes"), false, 5},
           {QStringLiteral("Effect"), QStringLiteral("What it changed in this build: nodes, bytes, time"), false, 14},
           {QStringLiteral("Saves"),
            QStringLiteral("Of a pass: time by the roofline and memory traffic that it saves in one step of this build"),
            true, 7},
           {QStringLiteral("Measured"),
            QStringLiteral(
                "What another value would change of the time of a step, by the newest trials (view Options: trials)"),
            true, 7}},
          parent),
      name_(new QLabel),
      doc_(new QLabel),
      proof_(new QLabel),
      cause_(new QPushButton(QStringLiteral("Find the cause"))),
      value_(new QComboBox),
      reset_(new QPushButton(QStringLiteral("Default"))),
      changed_(new QToolButton(this)) {
  changed_->setText(QStringLiteral("Changed"));
  changed_->setObjectName(QStringLiteral("options_changed"));
  changed_->setToolTip(QStringLiteral("Only options whose value is not their default"));
  changed_->setCheckable(true);
  connect(changed_, &QToolButton::toggled, this, &OptionsView::refillLater);
  const Metrics m = Metrics::current();
  setFilterPlaceholder(QStringLiteral("Filter options"));
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
  doc_->setObjectName(QStringLiteral("options_doc"));
  value_->setAccessibleName(QStringLiteral("Value"));
  value_->setToolTip(QStringLiteral(
      "The value: at once what decides only how a step is run, other settings from the next step on; Undo takes it back"));
  reset_->setToolTip(QStringLiteral("Back to the default value"));
  value_->setMinimumWidth(6 * m.unit);
  below->addWidget(name_);
  top->addWidget(value_, 1);
  top->addWidget(reset_);
  below->addLayout(top);
  below->addWidget(doc_);
  proof_->setObjectName(QStringLiteral("options_proof"));
  proof_->setTextFormat(Qt::PlainText);
  proof_->setWordWrap(true);
  proof_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  proof_->setToolTip(QStringLiteral(
      "One step was run with the plan before the last change and with the one after it, from one state: what both have at "
      "the place that is named, compared bit for bit"));
  proof_->hide();
  below->addWidget(proof_);
  cause_->setObjectName(QStringLiteral("options_cause"));
  cause_->setToolTip(
      QStringLiteral("Looks for the smallest set of options, and the part of the graph, that makes the step compute other "
                     "numbers than with every optimisation off; the part is saved as .onnx with its data"));
  cause_->hide();
  below->addWidget(cause_, 0, Qt::AlignLeft);
  connect(cause_, &QPushButton::clicked, this, [this] {
    emit wishes().command(QStringLiteral("view_bisect"));
    emit wishes().bisect();
  });
  body()->addLayout(below);
  const auto tellProof = [this] {
    QString role;
    const QString text = store().findings().optionProofText(&role);
    say(proof_, text, role);
    const auto& proof = store().findings().optionProof();
    cause_->setVisible(proof && proof->unavailable().empty() && !proof->equal() && !store().readOnly());
  };
  connect(&store().findings(), &Findings::optionProofChanged, this, tellProof);
  tellProof();  // of a change that was made before the list was looked at
  connect(&store(), &SnapshotStore::optionsChanged, this, &OptionsView::refillLater);
  connect(&store(), &SnapshotStore::phasesChanged, this, &OptionsView::refillLater);
  connect(&store().findings().trials(), &OptionTrials::changed, this, [this] {
    if (!store().findings().trials().running()) refillLater();
  });
  connect(table()->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &OptionsView::showChosen);
  const auto send = [this](const QString& text) {
    const auto* o = option(chosenRow());
    if (!filling_ && o && text != QString::fromStdString(o->value()))
      emit wishes().setOption(QString::fromStdString(o->name()), text);
  };
  auto* switches = new SwitchDelegate(*table(), 1, [this](const QModelIndex& at) {
    const int key = at.data(RowTableModel::kKeyRole).toInt();
    const auto& all = store().options();
    if (key < 0 || static_cast<std::size_t>(key) >= all.size()) return -1;
    const auto& value = all[static_cast<std::size_t>(key)].value();
    if (isOfScript(&all[static_cast<std::size_t>(key)])) return -1;  // shown, and no switch
    return all[static_cast<std::size_t>(key)].choices_size() != 2 ? -1 : value == "on" ? 1 : value == "off" ? 0 : -1;
  });
  connect(switches, &SwitchDelegate::turned, this, [this](const QModelIndex&) { activated(chosenRow()); });
  connect(value_, &QComboBox::textActivated, this, send);
  connect(reset_, &QPushButton::clicked, this, [this, send] {
    if (const auto* o = option(chosenRow())) send(QString::fromStdString(o->default_value()));
  });
}

QString OptionsView::emptyText() const {
  return store().options().empty()
             ? QStringLiteral(
                   "No options yet.\nOpen a model (Ctrl+O): every optimisation of its build appears here with its switch.")
             : QString();
}

const snapshot::Option* OptionsView::option(int row) const {
  if (row < 0 || row >= model().rowCount()) return nullptr;
  const auto at = static_cast<std::size_t>(model().row(row).key);
  return at < store().options().size() ? &store().options()[at] : nullptr;
}

void OptionsView::refill() {
  const auto* before = option(chosenRow());
  const qint64 chosen = before ? model().row(chosenRow()).key : -1;
  std::vector<TableRow> rows;
  std::vector<std::size_t> order(store().options().size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
    return groupOf(store().options()[a].name()) < groupOf(store().options()[b].name());
  });
  for (const std::size_t i : order) {
    const auto& o = store().options()[i];
    if (changed_->isChecked() && o.value() == o.default_value()) continue;
    const QString value = format::visible(o.value()), doc = format::visible(o.doc()),
                  effect = format::bytesWithin(format::visible(o.effect()));
    TableRow row;
    row.key = static_cast<qint64>(i);
    TableCell state(o.value() == "on"    ? QStringLiteral("✓ on")
                    : o.value() == "off" ? QStringLiteral("– off")
                                         : valueText(o, o.value()),
                    value, o.kind() == "bytes" ? value : QString());
    state.role = isOfScript(&o)       ? QStringLiteral("faint")
                 : o.value() == "on"  ? QStringLiteral("ok")
                 : o.value() == "off" ? QStringLiteral("muted")
                                      : QString();
    // Taken back by hand is as it is by itself.
    const bool back = o.set_by() == "window" && o.value() == o.default_value();
    TableCell by(back ? QStringLiteral("default") : format::visible(o.set_by()));
    by.role = back || o.set_by() == "default" ? QStringLiteral("faint") : QStringLiteral("accent");
    TableCell did(effect, effect, effect.isEmpty() ? QStringLiteral("It changed nothing in this build") : effect);
    did.role = QStringLiteral("muted");
    const int group = groupOf(o.name());
    TableCell kind(QString::fromUtf8(kGroups[group]), group);
    kind.role = QStringLiteral("muted");
    row.cells = {
        {format::visible(o.name()), format::visible(o.name()), doc}, state, by, kind, did, savedCell(store(), o.name()),
        measuredCell(store().findings().trials().report(), o)};
    rows.push_back(std::move(row));
  }
  setNothingText(changed_->isChecked() ? QStringLiteral("Every option has its default value.") : QString());
  setRows(std::move(rows));
  choose(chosen);
  showChosen();
}

// The table may be filtered and sorted: the option stays chosen, not the place where it stood.
void OptionsView::choose(qint64 key) {
  const QAbstractItemModel* shown = table()->model();
  int row = 0;
  for (int i = 0; i < shown->rowCount(); ++i)
    if (shown->index(i, 0).data(RowTableModel::kKeyRole).toLongLong() == key) row = i;
  if (shown->rowCount() > 0) table()->selectRow(row);
}

void OptionsView::showChosen() {
  const auto* o = option(chosenRow());
  filling_ = true;
  value_->clear();
  const bool fixed = store().readOnly() || isOfScript(o);
  value_->setEnabled(o != nullptr && !fixed);
  reset_->setEnabled(o && o->value() != o->default_value() && !fixed);
  name_->setText(o ? format::visible(o->name()) : QString());
  QString doc = o ? format::visible(o->doc()) : QString();
  if (o && !o->default_value().empty()) doc += QStringLiteral(". Default: %1.").arg(valueText(*o, o->default_value()));
  // In a narrow panel the column of effects is out of sight; what waits for the next step has to be seen.
  if (o && !o->effect().empty()) doc += QStringLiteral("\n%1").arg(format::bytesWithin(format::visible(o->effect())));
  if (isOfScript(o)) doc += QStringLiteral("\nThe script drives, and decides it: stepscope.Module(model, options={…})");
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
  if (!o || o->choices_size() < 2 || store().readOnly() || isOfScript(o)) return;
  int at = 0;
  for (int i = 0; i < o->choices_size(); ++i) at = o->choices(i) == o->value() ? i : at;
  emit wishes().setOption(QString::fromStdString(o->name()),
                          QString::fromStdString(o->choices((at + 1) % o->choices_size())));
}

void OptionsView::fillMenu(QMenu& menu, int row) {
  const auto* o = option(row);
  if (!o || store().readOnly() || isOfScript(o)) return;
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

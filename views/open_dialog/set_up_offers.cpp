// SPDX-License-Identifier: GPL-3.0-or-later
// What the set-up is told after it stands there: why its settings were refused, what else can be done, further settings.
#include <QDialogButtonBox>
#include <QFormLayout>
#include <QVBoxLayout>
#include <utility>

#include "views/common/format.h"
#include "views/open_dialog/form_parts.h"
#include "views/open_dialog/more_settings.h"
#include "views/open_dialog/set_up_dialog.h"
#include "views/open_dialog/set_up_settings.h"

namespace stepscope {
namespace {

constexpr const char* kLimit = "memory.limit";

}  // namespace

void SetUpDialog::showProblem(const QString& text, const QString& setting) {
  delete std::exchange(refusal_, nullptr);
  refused_ = format::bytesWithin(format::visible(text));
  asked_ = setting;
  if (QWidget* field = fieldOf(setting)) {
    asked_.clear();
    if (more_ && more_->isAncestorOf(field)) tabs_->setCurrentWidget(more_);
    refusal_ = new QLabel(refused_);
    refusal_->setObjectName(QStringLiteral("set_up_refusal"));
    refusal_->setTextFormat(Qt::PlainText);
    refusal_->setWordWrap(true);
    refusal_->setProperty("role", "error");
    refused_.clear();
    // Below the line of the form that the field stands in.
    for (QWidget* box = field->parentWidget(); box; box = box->parentWidget()) {
      auto* layout = qobject_cast<QFormLayout*>(box->layout());
      if (!layout) continue;
      for (int row = 0; row < layout->rowCount(); ++row) {
        QLayoutItem* item = layout->itemAt(row, QFormLayout::FieldRole);
        if (!item || !item->widget() || !(item->widget() == field || item->widget()->isAncestorOf(field))) continue;
        layout->insertRow(row + 1, QString(), refusal_);
        break;
      }
      break;
    }
    field->setProperty("role", "error");
    field->setFocus();
  }
  update();
}

void SetUpDialog::offerToFit() {
  const QString limit = value(configuration(), kLimit);
  if (format::bytesOf(limit).value_or(0) == 0) return;
  auto* fit = buttons_->addButton(QStringLiteral("Fit by recompute"), QDialogButtonBox::ActionRole);
  fit->setObjectName(QStringLiteral("set_up_fit"));
  fit->setAutoDefault(false);
  fit->setToolTip(
      QStringLiteral("Builds it so that it fits into %1: cheap values are computed again instead of being kept").arg(limit));
  connect(fit, &QPushButton::clicked, this, [this] {
    snapshot::Configure wanted;
    QString limit;
    for (const auto& [name, text] : settingsOf(configuration())) {
      if (name == kLimit) {
        limit = QString::fromStdString(text);
        continue;
      }
      wanted.add_settings()->set_name(name);
      wanted.mutable_settings(wanted.settings_size() - 1)->set_value(text);
    }
    emit fitWanted(wanted, limit);
    accept();
  });
}

void SetUpDialog::offerMore(const std::vector<snapshot::Option>& options) {
  if (more_ || options.empty() || (model_->problems_size() > 0 && model_->node_count() == 0)) return;
  more_ = new MoreSettings(options, kept_, QString::fromStdString(model_->path()).section('/', 0, -2));
  if (!host_.isEmpty()) more_->setRemote();
  std::erase_if(kept_, [this](const auto& setting) { return more_->has(setting.first); });
  tabs_->insertTab(1, more_, QStringLiteral("More"));
  for (const snapshot::Option& option : options)
    if (option.name() == "device")
      for (const auto& choice : option.choices())
        if (choice != "mirror") addDevice(QString::fromStdString(choice));  // a device that only tests have a use for
  if (!asked_.isEmpty()) showProblem(QString(refused_), QString(asked_));
  if (auto* state = more_->findChild<QLineEdit*>(QStringLiteral("set_up_more_start-state"))) {
    startState_ = state->text();
    connect(state, &QLineEdit::textChanged, this, [this] { update(); });
  }
  update();
}

void SetUpDialog::tellNotes(const QStringList& notes) {
  if (notes.isEmpty()) return;
  constexpr int kMost = 3;
  QStringList shown;
  for (const QString& note : notes.mid(0, kMost)) shown << format::visible(note);
  if (notes.size() > kMost)
    shown << QStringLiteral("and %1 more; after the build they stand in Alerts").arg(notes.size() - kMost);
  auto* label = new QLabel(QStringLiteral("Not kept by the capture: %1").arg(shown.join('\n')));
  label->setObjectName(QStringLiteral("set_up_notes"));
  label->setTextFormat(Qt::PlainText);
  label->setWordWrap(true);
  label->setProperty("role", "warn");
  auto* layout = static_cast<QVBoxLayout*>(this->layout());
  layout->insertWidget(layout->indexOf(tabs_), label);
}

void SetUpDialog::offerToGoOn(std::int64_t step) {
  const QString goesOn = QStringLiteral("at step %1, with the state that it has now").arg(format::count(step));
  if (begin_) return begin_->setItemText(0, goesOn);
  auto* line = new QWidget;
  auto* row = new QHBoxLayout(line);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(new QLabel(QStringLiteral("Begins")));
  begin_ = new QComboBox;
  begin_->setObjectName(QStringLiteral("set_up_begin"));
  begin_->setAccessibleName(QStringLiteral("Begins"));
  begin_->addItem(goesOn);
  begin_->addItem(QStringLiteral("anew, with the parameters of the file or of start-state"));
  begin_->setToolTip(QStringLiteral("Either is a run of its own in the list of runs"));
  row->addWidget(begin_, 1);
  leaveWheelToPage(*line);
  auto* all = static_cast<QVBoxLayout*>(layout());
  all->insertWidget(all->indexOf(buttons_), line);
  update();
}

void SetUpDialog::offerLook() {
  auto* look = buttons_->addButton(QStringLiteral("Only look at it"), QDialogButtonBox::ActionRole);
  look->setObjectName(QStringLiteral("set_up_look"));
  look->setAutoDefault(false);
  look->setToolTip(QStringLiteral("Shows its graph in place of the model that is open; nothing is built"));
  connect(look, &QPushButton::clicked, this, [this] {
    emit lookWanted();
    reject();
  });
}

}  // namespace stepscope

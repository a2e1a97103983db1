// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/step_chooser.h"

#include <algorithm>
#include <limits>

#include "views/common/chosen_step.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

constexpr int kNone = -1;
const QString kNewest = QStringLiteral("newest steps");

int asInt(std::int64_t step) {
  return static_cast<int>(std::clamp<std::int64_t>(step, kNone, std::numeric_limits<int>::max()));
}

}  // namespace

StepChooser::StepChooser(const ViewContext& context, QWidget* parent) : QSpinBox(parent), context_(context) {
  setObjectName(QStringLiteral("step_chooser"));
  setAccessibleName(QStringLiteral("Step that is shown"));
  setToolTip(QStringLiteral(
      "A step by its number: what the project recorded of it, in place of the newest steps. Empty: the newest again"));
  setKeyboardTracking(false);  // a number that is being typed is none
  setAlignment(Qt::AlignRight);
  setFixedWidth(9 * Metrics::current().unit);
  hide();
  connect(&context_.store, &SnapshotStore::stepsChanged, this, &StepChooser::follow);
  connect(&ChosenStep::of(context_.store), &ChosenStep::changed, this, &StepChooser::follow);
  connect(this, &QSpinBox::valueChanged, this, [this](int step) { emit context_.wishes.showStep(step); });
  follow();
}

void StepChooser::follow() {
  const auto& steps = context_.store.series().step();
  const QSignalBlocker quiet(this);
  setRange(kNone, steps.empty() ? kNone : asInt(steps.back()));
  setEnabled(!steps.empty());
  if (!hasFocus() || !lineEdit()->isModified()) setValue(asInt(ChosenStep::of(context_.store).step()));
}

QString StepChooser::textFromValue(int value) const {
  return value == kNone ? kNewest : QStringLiteral("step ") + QString::number(value);
}

int StepChooser::valueFromText(const QString& text) const {
  bool number = false;
  const int value = text.section(' ', -1).toInt(&number);
  return number && !text.trimmed().isEmpty() ? value : kNone;
}

QValidator::State StepChooser::validate(QString& text, int&) const {
  if (text.trimmed().isEmpty() || text == kNewest) return QValidator::Acceptable;
  bool number = false;
  const int value = text.section(' ', -1).toInt(&number);
  if (number) return value >= 0 && value <= maximum() ? QValidator::Acceptable : QValidator::Intermediate;
  return QValidator::Intermediate;
}

// From the newest ones down is the newest one.
void StepChooser::stepBy(int steps) {
  if (value() == kNone && steps < 0)
    setValue(maximum());
  else
    QSpinBox::stepBy(steps);
}

}  // namespace stepscope

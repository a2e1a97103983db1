// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/toolbar.h"

#include <QHBoxLayout>
#include <QMenu>
#include <QPainter>
#include <algorithm>
#include <array>

#include "app/workbench/actions.h"
#include "views/common/icons.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

class Line : public QWidget {
 public:
  Line() { setFixedSize(15, 22); }

 protected:
  void paintEvent(QPaintEvent*) override { QPainter(this).fillRect(7, 0, 1, height(), Tokens::current().border); }
};

const QString kCancel = QStringLiteral("Cancel");  // of a build

}  // namespace

Toolbar::Toolbar(const Actions& actions, QWidget* parent) : QWidget(parent), actions_(actions) {
  setObjectName(QStringLiteral("toolbar"));
  const Metrics m = Metrics::current();
  setFixedHeight(m.toolbar);
  // What it shows follows the width of the window; it does not hold the window wide.
  setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(m.padding, 0, m.padding, 1);
  layout->setSpacing(2);
  menu_ = new QToolButton;
  menu_->setIcon(icon(QStringLiteral("menu")));
  menu_->setIconSize({m.icon, m.icon});
  menu_->setToolTip(QStringLiteral("All commands"));
  menu_->setAccessibleName(QStringLiteral("Menu"));
  menu_->setPopupMode(QToolButton::InstantPopup);
  layout->addWidget(menu_);
  layout->addWidget(button(QStringLiteral("open")));
  addSeparator();
  run_ = button(QStringLiteral("run"));
  layout->addWidget(run_);
  for (const char* id : {"step_back", "step", "step_phase", "step_whole", "run_here"})
    layout->addWidget(button(QLatin1String(id)));
  addSeparator();
  pause_ = actions_[QStringLiteral("stop")]->text();
  pauseTip_ = actions_[QStringLiteral("stop")]->toolTip();
  actions_[QStringLiteral("stop")]->setIconText(' ' + pause_);
  const QFontMetrics letters(font());
  const int longest = std::max(letters.horizontalAdvance(pause_), letters.horizontalAdvance(kCancel));
  runWidth_ =
      run_->sizeHint().width() + std::max(0, longest - letters.horizontalAdvance(actions_[QStringLiteral("run")]->text()));
  runningShown_.setSingleShot(true);
  connect(&runningShown_, &QTimer::timeout, this, &Toolbar::showRunning);
  device_ = new LabelButton(QStringLiteral("Device"));
  device_->setObjectName(QStringLiteral("tool_device"));
  device_->setAccessibleName(QStringLiteral("Device and precision"));
  device_->setToolTip(QStringLiteral("Where the step runs, and in which precision; opens the set-up"));
  connect(device_, &QAbstractButton::clicked, actions_[QStringLiteral("configure")], &QAction::trigger);
  device_->hide();
  layout->addWidget(device_);
  layout->addSpacing(4);
  options_ = new LabelButton(QStringLiteral("Options"));
  options_->setIcon(icon(QStringLiteral("options")));
  options_->setLabelStays(true);
  connect(options_, &QAbstractButton::clicked, actions_[QStringLiteral("options")], &QAction::trigger);
  layout->addWidget(options_);
  layout->addSpacing(4);
  breakOn_ = new LabelButton(QStringLiteral("Break on"));
  breakOn_->setCompactIcon(icon(QStringLiteral("break")));
  breakOn_->setToolTip(QStringLiteral("What stops a run besides breakpoints on instructions"));
  layout->addWidget(breakOn_);
  layout->addStretch(1);
  alerts_ = new LabelButton({});
  alerts_->setBoxed(false);
  alerts_->setAccessibleName(QStringLiteral("Alerts"));
  connect(alerts_, &QAbstractButton::clicked, actions_[QStringLiteral("next_alert")], &QAction::trigger);
  alerts_->hide();
  layout->addWidget(alerts_);
  layout_ = new LabelButton(QStringLiteral("Layout"));
  layout_->setCompactIcon(icon(QStringLiteral("layout")));
  layout_->setToolTip(QStringLiteral("Layout: where the views stand"));
  layout->addWidget(layout_);
  layout->addSpacing(2);
  export_ = new LabelButton(QStringLiteral("Export"));
  export_->setIcon(icon(QStringLiteral("export")));
  export_->setBoxed(false);
  export_->setToolTip(QStringLiteral("Export: reports and pictures"));
  layout->addWidget(export_);
}

QToolButton* Toolbar::button(const QString& id) {
  auto* made = new QToolButton;
  QAction* action = actions_[id];
  // A style sheet cannot widen the gap between icon and text.
  QString text = action->text();
  if (id == u"run_here") text = QStringLiteral("Run to…");
  if (id == u"open") text = QStringLiteral("Open");
  action->setIconText(' ' + text);
  made->setDefaultAction(action);
  made->setObjectName(QStringLiteral("tool_") + id);
  made->setIconSize({Metrics::current().icon, Metrics::current().icon});
  made->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  made->setFocusPolicy(Qt::TabFocus);
  texts_ << made;
  return made;
}

void Toolbar::addSeparator() { layout()->addWidget(new Line); }

void Toolbar::setMenus(QMenu* main, QMenu* breakOn, QMenu* layouts, QMenu* exports) {
  menu_->setMenu(main);
  breakOn_->setMenu(breakOn);
  layout_->setMenu(layouts);
  export_->setMenu(exports);
}

void Toolbar::setOptions(int on, int total) {
  options_->setValue(total > 0 ? QStringLiteral("%1 of %2 on").arg(on).arg(total) : QString());
  options_->setToolTip((options_->value().isEmpty() ? QString() : options_->value() + QStringLiteral(". ")) +
                       QStringLiteral("Every option, what it changed, and its switch"));
  fitTexts();
}

void Toolbar::setDevice(const QString& deviceAndPrecision) {
  device_->setValue(deviceAndPrecision);
  fitTexts();
}

void Toolbar::setBreakOn(const QString& what) {
  breakOn_->setValue(what);
  fitTexts();
}

void Toolbar::setLayoutName(const QString& name) {
  layout_->setValue(name);
  fitTexts();
}

void Toolbar::setAlerts(int notes, int warnings, int errors) {
  const auto counted = [](int n, const char* what) {
    return QStringLiteral("%1 %2%3").arg(n).arg(QLatin1String(what), n == 1 ? QString() : QStringLiteral("s"));
  };
  const int n = warnings + errors;
  const Tokens& t = Tokens::current();
  const QColor colour = errors > 0 ? t.error : warnings > 0 ? t.warn : t.muted;
  alerts_->setIcon(icon(n > 0 ? QStringLiteral("warning") : QStringLiteral("info"), colour));
  alerts_->setColour(colour);
  alerts_->setText(n > 0 ? counted(n, "alert") : counted(notes, "note"));
  alertsGiveWay_ = n == 0;
  alerts_->setToolTip(QStringLiteral("%1, %2, %3; click selects the next")
                          .arg(counted(errors, "error"), counted(warnings, "warning"), counted(notes, "note")));
  if (n + notes > 0 && alerts_->isHidden()) giveWay();  // showing it lays the window out at once, and would widen it
  alerts_->setVisible(n + notes > 0);
  alerts_->updateGeometry();
  fitTexts();
}

void Toolbar::setRunning(bool running, bool building) {
  running_ = running;
  // It throws a build away; nobody expects that of a pause.
  QAction* stop = actions_[QStringLiteral("stop")];
  stop->setText(building ? kCancel : pause_);
  stop->setIconText(' ' + stop->text());
  stop->setToolTip(building ? QStringLiteral("Throw this build away (Esc); what was built before stays") : pauseTip_);
  constexpr int kVisible = 120;  // milliseconds
  if (!running)
    QMetaObject::invokeMethod(this, &Toolbar::endRunning, Qt::QueuedConnection);
  else if (building)
    showRunning();
  else if (!runningShown_.isActive())
    runningShown_.start(kVisible);
}

void Toolbar::endRunning() {
  if (running_) return;
  runningShown_.stop();
  showRunning();
}

void Toolbar::showRunning() {
  QAction* action = actions_[running_ ? QStringLiteral("stop") : QStringLiteral("run")];
  if (run_->defaultAction() == action) return;
  run_->removeAction(run_->defaultAction());
  run_->setDefaultAction(action);
  fitTexts();
}

int Toolbar::wantedWidth() const {
  int width = 0;
  for (int i = 0; i < layout()->count(); ++i) {
    QLayoutItem* item = layout()->itemAt(i);
    if (!item->isEmpty() || item->spacerItem()) width += item->sizeHint().width() + layout()->spacing();
  }
  return width + layout()->contentsMargins().left() + layout()->contentsMargins().right();
}

void Toolbar::giveWay() {
  run_->setMinimumWidth(0);
  for (QToolButton* b : texts_) b->setToolButtonStyle(Qt::ToolButtonIconOnly);
  for (LabelButton* b : {options_, device_, layout_, breakOn_, export_}) b->setCompact(true);
  layout()->invalidate();
}

void Toolbar::fitTexts() {
  for (QToolButton* b : texts_) b->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  run_->setMinimumWidth(runWidth_);  // whichever of its two names is the longer one: what stands beside it does not move
  const std::array labels{options_, device_, layout_, breakOn_, export_};
  for (LabelButton* b : labels) b->setCompact(false);
  alerts_->setCompact(false);
  // The device is shown only once it is known to fit: showing lays the window out at once, and would widen it.
  bool device = !device_->value().isEmpty();
  const auto fits = [this, &device] {
    layout()->invalidate();
    const int more = device && device_->isHidden() ? device_->sizeHint().width() + layout()->spacing() : 0;
    return wantedWidth() + more <= width();
  };
  // What gives way says it in its tooltip, and an icon stands for a label that is gone.
  for (LabelButton* b : labels) {
    if (fits()) break;
    b->setCompact(true);
  }
  if (alertsGiveWay_ && !fits()) alerts_->setCompact(true);
  // The status line has the device too: the words of what moves a step stay longer.
  device_->setVisible(device && fits());
  device = !device_->isHidden();
  for (auto i = texts_.size() - 1; i >= 0 && !fits(); --i) {
    if (texts_[i] == run_) run_->setMinimumWidth(0);
    texts_[i]->setToolButtonStyle(Qt::ToolButtonIconOnly);
  }
}

void Toolbar::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Tokens& t = Tokens::current();
  painter.fillRect(rect(), t.panel);
  painter.fillRect(0, height() - 1, width(), 1, t.border);
}

void Toolbar::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  fitTexts();
}

}  // namespace stepscope

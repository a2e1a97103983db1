// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/status_line.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QPainter>
#include <algorithm>
#include <utility>

#include "app/workbench/session/script_place.h"
#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/running.h"
#include "views/common/tokens.h"

namespace stepscope {
QString StatusLine::strong(const QString& text) {
  return QStringLiteral("<span style='font-weight:500;color:%1'>%2</span>")
      .arg(Tokens::current().text.name(), text.toHtmlEscaped());
}

QString StatusLine::dot(const QColor& colour, const QString& text) {
  return QStringLiteral("<span style='color:%1'>●</span> <span style='color:%1'>%2</span>")
      .arg(colour.name(), text.toHtmlEscaped());
}

StatusLine::StatusLine(const SnapshotStore& store, const SelectionModel& selection, QWidget* parent)
    : QWidget(parent), store_(store), selection_(selection) {
  setObjectName(QStringLiteral("status_line"));
  const Metrics m = Metrics::current();
  setFixedHeight(qRound(2.0 * m.unit));
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(m.padding, 1, m.padding, 0);
  layout->setSpacing(qRound(1.6 * m.unit));
  const auto add = [&](const char* name) {
    auto* label = new QLabel;
    label->setObjectName(QLatin1String(name));
    label->setTextFormat(Qt::RichText);
    label->setProperty("role", "muted");
    label->setFont(smallFont());
    layout->addWidget(label);
    return label;
  };
  where_ = add("status_where");
  step_ = add("status_step");
  phase_ = add("status_phase");
  loss_ = add("status_loss");
  speed_ = add("status_speed");
  peak_ = add("status_peak");
  note_ = add("status_note");
  note_->setTextFormat(Qt::PlainText);
  // It has what the others leave: names and expressions of users are as long as they like, and the window does not grow.
  note_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  layout->setStretchFactor(note_, 1);
  device_ = add("status_device");
  worker_ = add("status_worker");
  recorder_ = add("status_recorder");
  worker_->setCursor(Qt::PointingHandCursor);
  connect(worker_, &QLabel::linkActivated, this, &StatusLine::workerClicked);
  noteTimer_.setSingleShot(true);
  connect(&noteTimer_, &QTimer::timeout, note_, &QLabel::clear);
  connect(&store, &SnapshotStore::positionChanged, this, [this] {
    done_ = total_ = 0;  // what was told was on the way there
    refresh();
  });
  connect(&store, &SnapshotStore::planChanged, this, &StatusLine::refresh);
  connect(&store, &SnapshotStore::stepsChanged, this, &StatusLine::refresh);
  connect(&store, &SnapshotStore::workerChanged, this, &StatusLine::refresh);
  connect(&store, &SnapshotStore::buildingChanged, this, &StatusLine::refresh);
  connect(&Running::of(store), &Running::changed, this, &StatusLine::refresh);
  refresh();
}

void StatusLine::setDevice(const QString& text) {
  device_->setText(text.toHtmlEscaped());
  hideEmpty();
}

void StatusLine::setScript(const QString& name) {
  if (name == script_) return;
  script_ = name;
  refresh();
}

void StatusLine::setRecorder(const QString& text, const QString& role, const QString& tip) {
  const Tokens& t = Tokens::current();
  recorderText_ = text;
  recorderRole_ = role;
  recorderTip_ = tip;
  recorder_->setText(text.isEmpty() ? QString()
                                    : dot(role == u"ok"      ? t.ok
                                          : role == u"warn"  ? t.warn
                                          : role == u"error" ? t.error
                                                             : t.faint,
                                          text));
  recorder_->setToolTip(tip.toHtmlEscaped());
  hideEmpty();
}

void StatusLine::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() != QEvent::PaletteChange && event->type() != QEvent::StyleChange) return;
  // Its words have colours of the theme in them.
  setRecorder(QString(recorderText_), QString(recorderRole_), QString(recorderTip_));
  refresh();
}

void StatusLine::note(const QString& text) {
  noted_ = text;
  note_->setText(text);
  note_->setToolTip(text.toHtmlEscaped());
  elideNote();
  noteTimer_.start(6000);
}

// Its place is what the others leave, which changes while it stands.
void StatusLine::elideNote() {
  if (!note_->text().isEmpty()) note_->setText(note_->fontMetrics().elidedText(noted_, Qt::ElideRight, note_->width()));
}

void StatusLine::takeBack(const QString& note) {
  if (noted_ == note) note_->clear();
}

void StatusLine::setRun(std::int64_t goal, bool fullSpeed) {
  if (goal == goal_ && fullSpeed == fullSpeed_) return;
  goal_ = goal;
  fullSpeed_ = fullSpeed;
  refresh();
}

void StatusLine::setRestoring(bool restoring) {
  if (restoring == restoring_) return;
  restoring_ = restoring;
  refresh();
}

void StatusLine::setProgress(const QString& what, qint64 done, qint64 total) {
  if (what != u"instruction") return;
  runs_ = stepOfRun();
  done_ = done;
  total_ = total;
  refresh();
}

// The position comes with the answer to many steps, the steps as they end.
std::int64_t StatusLine::stepOfRun() const {
  const snapshot::Position& p = store_.position();
  return p.in_step() || store_.steps().empty() ? p.step() : std::max(p.step(), store_.steps().back()->step() + 1);
}

bool StatusLine::working() const {
  return store_.workerState() == WorkerState::kBusy || store_.workerState() == WorkerState::kUnresponsive;
}

// Of a step that takes long the worker tells how far it is; the position comes when it stands again.
qint64 StatusLine::instructionNow() const {
  const snapshot::Position& p = store_.position();
  return p.in_step() && total_ == 0 ? p.instruction() : done_;
}

void StatusLine::refresh() {
  const bool running = Running::of(store_).on();
  if (!working()) total_ = 0;
  showPlace(running);
  showStep(running);
  showLoss();
  showSpeed();
  showPeak();
  showWorker(running);
  hideEmpty();
  // While steps follow each other no field gives back the width it once needed, so that none moves; and a field that grew is
  // laid out before it is painted, or its text would be cut until the loop comes to it.
  for (QLabel* label : {where_, step_, phase_, loss_, peak_})
    label->setMinimumWidth(running && !label->isHidden() ? std::max(label->minimumWidth(), label->sizeHint().width()) : 0);
  // Where room is short, what padding is of the tokens is cut: it widens no window.
  speed_->setMinimumWidth(running && !speed_->isHidden() ? std::max(speed_->minimumWidth(), speedWidth_) : speedWidth_);
  layout()->activate();
  elideNote();
}

void StatusLine::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  layout()->activate();
  elideNote();
}

void StatusLine::showPlace(bool running) {
  const PlanPtr& plan = store_.plan();
  const snapshot::Position& p = store_.position();
  // Without a worker nothing is ready, and nothing goes on by itself.
  const bool dead = store_.workerState() == WorkerState::kDead && !store_.readOnly();
  const bool busy = working();

  const bool building = store_.building();
  if (busy && (restoring_ || building)) {
    where_->setText(strong(restoring_ ? QStringLiteral("Restoring the state …") : QStringLiteral("Building …")));
    phase_->setText({});
  } else if (!plan) {
    where_->setText({});
    phase_->setText({});
  } else if (running) {
    const std::int64_t step = stepOfRun();
    QString text = strong(fullSpeed_ ? QStringLiteral("Full speed,") : QStringLiteral("Running")) +
                   (goal_ > 0 ? QStringLiteral(" step %1 of %2").arg(format::count(step), format::count(goal_))
                              : QStringLiteral(" step %1").arg(format::count(step)));
    // What was told of a step that ended says nothing of the next one.
    if (std::exchange(runs_, step) != step) done_ = total_ = 0;
    const qint64 at = instructionNow(), all = p.in_step() ? plan->size() : total_;
    if (at < all || p.in_step())
      text += QStringLiteral(" · instruction %1 of %2").arg(format::count(at), format::count(all));
    where_->setText(text);
    const snapshot::Instruction* next = at < all ? plan->instruction(static_cast<int>(at)) : nullptr;
    phase_->setText(next ? QStringLiteral("Phase ") + strong(names::phase(next->phase()).toLower()) : QString());
  } else if (atPlace(p) && !dead) {
    where_->setText(
        strong(busy ? QStringLiteral("Running") : QStringLiteral("Paused")) + QStringLiteral(" at ") +
        fontMetrics().elidedText(format::visible(placeOf(p)), Qt::ElideRight, 30 * Metrics::current().unit).toHtmlEscaped());
    phase_->setText(QStringLiteral("Phase ") + strong(QStringLiteral("the script's own")));
  } else if (p.in_step() || (busy && total_ > 0)) {
    where_->setText(strong(dead   ? QStringLiteral("Stopped")
                           : busy ? QStringLiteral("Running")
                                  : QStringLiteral("Paused")) +
                    QStringLiteral(" at %1 of %2").arg(format::count(instructionNow()), format::count(plan->size())));
    const snapshot::Instruction* next = plan->instruction(static_cast<int>(instructionNow()));
    phase_->setText(QStringLiteral("Phase ") +
                    strong(next ? names::phase(next->phase()).toLower() : QStringLiteral("end of step")));
  } else {
    where_->setText(strong(store_.readOnly() ? QStringLiteral("Recorded run")
                           : dead            ? QStringLiteral("Stopped")
                           : busy            ? QStringLiteral("Running")
                                             : QStringLiteral("Ready")));
    phase_->setText({});
  }
  where_->setToolTip(format::visible(p.stopped_by()).toHtmlEscaped());
}

// An empty label would still have its gaps; one that is filled now and then during a run keeps its place.
void StatusLine::hideEmpty() {
  const bool running = Running::of(store_).on();
  for (QLabel* label : {where_, step_, phase_, loss_, speed_, peak_, device_, worker_, recorder_})
    label->setHidden(label->text().isEmpty() && !(running && label->minimumWidth() > 0));
}

void StatusLine::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Tokens& t = Tokens::current();
  painter.fillRect(rect(), t.panel);
  painter.fillRect(0, 0, width(), 1, t.border);
}

}  // namespace stepscope

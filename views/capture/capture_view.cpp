// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/capture/capture_view.h"

#include <QHBoxLayout>
#include <QVBoxLayout>

#include "views/capture/capture_rows.h"
#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/script_drives.h"
#include "views/common/text_line.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

// Of the run, where the comparison, which is in float32, does not speak of it.
QString otherPrecision(const SnapshotStore& store) {
  for (const auto& option : store.options())
    if (option.name() == "precision" && option.value() != "fp32") return format::visible(option.value());
  return {};
}

}  // namespace

CaptureView::CaptureView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("capture"), QStringLiteral("Next to PyTorch"), capture::columns(), parent),
      summary_(textLine("", "capture_summary")),
      notes_(textLine("warn", "capture_notes")),
      problem_(textLine("", "capture_problem")),
      always_(new QCheckBox(QStringLiteral("Before training"))),
      compare_(new QPushButton) {
  const Metrics m = Metrics::current();
  setFilterPlaceholder(QStringLiteral("Filter tensors"));
  always_->setObjectName(QStringLiteral("capture_always"));
  always_->setToolTip(QStringLiteral(
      "Compares a captured model as soon as it is built, before its first step; about the time of two steps"));
  compare_->setObjectName(QStringLiteral("capture_compare"));
  auto* top = new QWidget;
  auto* rows = new QVBoxLayout(top);
  rows->setContentsMargins(m.padding, qRound(0.4 * m.unit), m.padding, qRound(0.4 * m.unit));
  rows->setSpacing(qRound(0.35 * m.unit));
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(compare_);
  buttons->addWidget(always_);
  buttons->addStretch(1);
  rows->addLayout(buttons);
  rows->addWidget(summary_);
  rows->addWidget(notes_);
  rows->addWidget(problem_);
  body()->insertWidget(0, top);
  const GoldenFinding& golden = store().findings().golden();
  connect(compare_, &QPushButton::clicked, this, [this] { emit wishes().compareWithCapture(); });
  connect(always_, &QCheckBox::clicked, this, [this](bool on) { emit wishes().compareCaptures(on); });
  connect(&golden, &GoldenFinding::changed, this, &CaptureView::refillLater);
  connect(&golden, &GoldenFinding::changed, this, &CaptureView::follow);
  connect(&store(), &SnapshotStore::planChanged, this, &CaptureView::refillLater);  // rows lead to other values
  connect(&store(), &SnapshotStore::planChanged, this, &CaptureView::follow);
  connect(&store(), &SnapshotStore::workerChanged, this, &CaptureView::follow);
  connect(&store(), &SnapshotStore::optionsChanged, this, &CaptureView::follow);
  follow();
}

QString CaptureView::emptyText() const {
  if (store().readOnly())
    return QStringLiteral("A recorded project.\nA running worker compares: open the captured folder itself (Ctrl+O).");
  if (!store().plan())
    return QStringLiteral(
        "No plan yet.\nOpen a folder that stepscope_capture wrote (Ctrl+O) and build its training step: its loss, "
        "gradients and running statistics are compared with PyTorch's.");
  return {};
}

void CaptureView::refill() {
  const auto& comparison = store().findings().golden().comparison();
  setRows(comparison ? capture::rows(*comparison, store().graph().get()) : std::vector<TableRow>());
}

void CaptureView::follow() {
  const GoldenFinding& golden = store().findings().golden();
  const bool alive = store().plan() && !store().readOnly() && store().workerState() != WorkerState::kDead;
  always_->setChecked(golden.wanted());
  compare_->setText(golden.comparing() ? QStringLiteral("Comparing …") : QStringLiteral("Compare"));
  compare_->setToolTip(
      QStringLiteral("Runs the first batch of the capture from the captured parameters in float32, beside the run, which "
                     "stays where it is; Esc cancels"));
  allow(store(), compare_, alive && !golden.comparing());
  QString role;
  QString text = golden.comparison() ? capture::summary(*golden.comparison(), &role) : QString();
  const QString precision = otherPrecision(store());
  if (golden.comparison() && !precision.isEmpty()) {
    text += QStringLiteral("\nThe run is in %1, which was not compared: the view “Precision” judges it").arg(precision);
    if (role == QStringLiteral("ok")) role = QStringLiteral("warn");
  }
  say(summary_, text, role);
  QStringList notes;
  if (golden.comparison())
    for (const std::string& note : golden.comparison()->notes()) notes << format::visible(note);
  say(notes_,
      notes.isEmpty() ? QString() : QStringLiteral("Not kept by the capture: %1").arg(notes.join(QStringLiteral("\n"))),
      QStringLiteral("warn"));
  say(problem_, format::visible(golden.problem()), QStringLiteral("error"));
  setNothingText(golden.comparison()
                     ? QStringLiteral("No tensor was compared.")
                     : QStringLiteral("Nothing compared yet.\n“Compare” runs the first batch next to what PyTorch computed "
                                      "when the model was captured."));
  emit emptyChanged();
}

}  // namespace stepscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/streams/streams_view.h"

#include <QHBoxLayout>
#include <QJsonDocument>
#include <QJsonObject>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/counted_steps.h"
#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/script_drives.h"
#include "views/common/text_line.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

QPushButton* makeButton(const QString& text, const char* name, const QString& tip) {
  auto* button = new QPushButton(text);
  button->setObjectName(QLatin1String(name));
  button->setToolTip(tip);
  return button;
}

}  // namespace

StreamsView::StreamsView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("streams"), QStringLiteral("Streams"), parent),
      canvas_(new StreamsCanvas(this)),
      summary_(new QLabel),
      proof_(new QLabel) {
  const Metrics m = Metrics::current();
  canvas_->setObjectName(QStringLiteral("streams_rows"));
  apply_ = makeButton(QStringLiteral("Apply"), "streams_apply",
                      QStringLiteral("Sets option streams.partition, in a paused step too. The step is run with both plans "
                                     "to compare the bits; Ctrl+Z takes it back"));
  reset_ = makeButton(QStringLiteral("Reset"), "streams_reset", QStringLiteral("Back to the plan"));
  automatic_ = makeButton(QStringLiteral("Automatic"), "streams_automatic",
                          QStringLiteral("The plan chooses: empties option streams.partition"));
  try_ = makeButton(QStringLiteral("Try both"), "streams_try",
                    QStringLiteral("Runs the present step with this partition and with the automatic one, in turn, and "
                                   "compares times and numbers (view Options: trials)"));
  save_ = makeButton(QStringLiteral("Save…"), "streams_save",
                     QStringLiteral("Writes what stands here as a file for option streams.partition"));
  load_ = makeButton(QStringLiteral("Load…"), "streams_load", QStringLiteral("Applies such a file"));
  for (QLabel* label : {summary_, proof_}) {
    label->setTextFormat(Qt::PlainText);
    label->setWordWrap(true);
  }
  summary_->setObjectName(QStringLiteral("streams_summary"));
  proof_->setObjectName(QStringLiteral("streams_proof"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(canvas_, 1);
  auto* below = new QVBoxLayout;
  below->setSpacing(qRound(0.35 * m.unit));
  below->setContentsMargins(m.padding, m.padding / 2, m.padding, m.padding / 2);
  below->addWidget(summary_);
  below->addWidget(proof_);
  auto* row = new QHBoxLayout;
  row->setSpacing(qRound(0.5 * m.unit));
  for (QPushButton* button : {apply_, reset_, automatic_, try_, save_, load_}) row->addWidget(button);
  row->addStretch(1);
  below->addLayout(row);
  column->addLayout(below);
  setFocusProxy(canvas_);

  connect(canvas_, &StreamsCanvas::moved, this, &StreamsView::moveNode);
  connect(canvas_, &AxisCanvas::clicked, this, [this](QPointF pixel) {
    if (const int hit = canvas_->instructionAt(pixel); hit >= 0) selection().select(Selection::ofInstruction(hit));
  });
  connect(&selection(), &SelectionModel::selectionChanged, this, [this] {
    const Selection& s = this->selection().selection();
    canvas_->setSelected(s.instruction < 0 && s.node >= 0 && store().plan() ? store().plan()->instructionOfNode(s.node)
                                                                            : s.instruction);
  });
  connect(apply_, &QPushButton::clicked, this,
          [this] { emit wishes().setOption(QStringLiteral("streams.partition"), partitionText()); });
  connect(reset_, &QPushButton::clicked, this, &StreamsView::takePlan);
  connect(automatic_, &QPushButton::clicked, this,
          [this] { emit wishes().setOption(QStringLiteral("streams.partition"), QString()); });
  connect(try_, &QPushButton::clicked, this, [this] {
    snapshot::GetTrials question;
    question.set_only("streams.partition=");
    emit wishes().command(QStringLiteral("view_trials"));
    emit wishes().tryOptions(question);
  });
  connect(save_, &QPushButton::clicked, this,
          [this] { emit wishes().exportTable(QStringLiteral("streams.json"), partitionText()); });
  connect(load_, &QPushButton::clicked, this, [this] { emit wishes().command(QStringLiteral("load_streams")); });
  connect(&store(), &SnapshotStore::planChanged, this, &StreamsView::takePlan);
  connect(&store(), &SnapshotStore::graphChanged, this, &StreamsView::takePlan);
  connect(&store(), &SnapshotStore::stepsChanged, this, &StreamsView::takeTimes);
  connect(&store(), &SnapshotStore::optionsChanged, this, &StreamsView::showButtons);
  connect(&store(), &SnapshotStore::workerChanged, this, &StreamsView::showButtons);
  connect(&store(), &SnapshotStore::modelChanged, this, &View::emptyChanged);
  const auto tellProof = [this] {
    QString role;
    const QString text = store().findings().optionProofText(&role);
    proof_->setText(text);
    proof_->setVisible(!text.isEmpty());
  };
  connect(&store().findings(), &Findings::optionProofChanged, this, tellProof);
  tellProof();  // of a change that was made before the view was opened
  takePlan();
}

bool StreamsView::hasStreams() const {
  if (!store().plan()) return false;
  for (const snapshot::Instruction& in : store().plan()->plan().instructions())
    if (in.stream() > 0) return true;
  return false;
}

QString StreamsView::applied() const {
  for (const snapshot::Option& option : store().options())
    if (option.name() == "streams.partition") return QString::fromStdString(option.value());
  return {};
}

QString StreamsView::headerText() const {
  return hasStreams() && canvas_->picture() ? QStringLiteral("%1 streams").arg(canvas_->picture()->streams) : QString();
}

QString StreamsView::emptyText() const {
  if (!store().plan())
    return QStringLiteral(
        "No plan yet. Open a model (Ctrl+O) and build its step for a GPU (option device = cuda, or emulated).");
  if (!hasStreams())
    return QStringLiteral(
        "This plan has one stream: the CPU runs one instruction after the other. Build it for a GPU (option device = cuda, "
        "or "
        "emulated) with option cuda.streams at 2 or more.");
  return {};
}

void StreamsView::takePlan() {
  streams_.clear();
  if (store().plan())
    for (const snapshot::Instruction& in : store().plan()->plan().instructions()) streams_.push_back(in.stream());
  moves_ = 0;
  ns_.clear();
  takeTimes();
  emit emptyChanged();
}

// What the device measured, else the least that the machine needs for it, else one unit for each.
void StreamsView::takeTimes() {
  const PlanPtr& plan = store().plan();
  if (!plan) return canvas_->setPicture(nullptr);
  std::vector<std::int64_t> ns(at(plan->size()), 0);
  const snapshot::StepRecord* measured = newestOfPlan(store());
  bool any = false;
  if (measured)
    for (const snapshot::DeviceRecord& record : measured->device().records())
      if (record.kind() != snapshot::DeviceRecord::STREAM_WAIT && record.kind() != snapshot::DeviceRecord::HOST_WAIT &&
          record.kind() != snapshot::DeviceRecord::OVERHEAD && record.instruction() >= 0 &&
          record.instruction() < plan->size() && record.end_ns() > record.begin_ns()) {
        ns[at(record.instruction())] += record.end_ns() - record.begin_ns();
        any = true;
      }
  basis_ = any ? QStringLiteral("times of step %1").arg(measured->step()) : QString();
  if (!any) {
    for (int i = 0; i < plan->size(); ++i)
      if (const double least = plan->instruction(i)->roof().ns(); least > 0) {
        ns[at(i)] = static_cast<std::int64_t>(least) + 1;
        any = true;
      }
    basis_ = any ? QStringLiteral("least times by the machine's peak") : QStringLiteral("1 µs each: nothing was measured");
    if (!any) std::ranges::fill(ns, 1000);
  }
  if (ns == ns_) return;
  ns_ = std::move(ns);
  show();
}

void StreamsView::show() {
  const PlanPtr& plan = store().plan();
  if (!plan || streams_.size() != at(plan->size())) return;
  auto picture = std::make_shared<StreamPicture>();
  picture->plan = plan;
  std::vector<int> planned;
  for (const snapshot::Instruction& in : plan->plan().instructions()) {
    planned.push_back(in.stream());
    picture->streams = std::max(picture->streams, in.stream() + 1);
    picture->host = picture->host || (!in.on_host().empty() && !in.view());
    const snapshot::Node* node = store().graph() ? store().graph()->node(in.node()) : nullptr;
    picture->categories.push_back(node ? QString::fromStdString(node->category()) : QString());
    picture->movable.push_back(node && !node->name().empty() && in.kind() == snapshot::KIND_KERNEL && !in.view() &&
                               in.on_host().empty());
  }
  for (const snapshot::Option& option : store().options())
    if (option.name() == "cuda.streams")
      picture->streams = std::clamp(QString::fromStdString(option.value()).toInt(), picture->streams, 8);
  plannedNs_ = StreamSchedule::of(*plan, planned, picture->streams, ns_).totalNs;
  picture->schedule = StreamSchedule::of(*plan, streams_, picture->streams, ns_);
  const StreamSchedule& s = picture->schedule;
  QString text = QStringLiteral("%1 (%2) · %3 waits · longest chain %4 instructions")
                     .arg(format::time(s.totalNs), basis_, format::count(static_cast<std::int64_t>(s.waits.size())),
                          format::count(static_cast<std::int64_t>(s.critical.size())));
  if (moves_ > 0)
    text += QStringLiteral(" · moved: %1; the plan takes %2").arg(format::count(moves_), format::time(plannedNs_));
  summary_->setText(text);
  canvas_->setPicture(std::move(picture));
  showButtons();
  emit headerChanged();
}

void StreamsView::showButtons() {
  const bool writable = !store().readOnly() && store().workerState() == WorkerState::kIdle && hasStreams();
  const bool chosen = !applied().isEmpty();
  canvas_->setEditable(!store().readOnly() && !scriptDrives(store()) && hasStreams());
  allow(store(), apply_, writable && moves_ > 0);
  reset_->setEnabled(moves_ > 0);
  allow(store(), automatic_, writable && chosen);
  allow(store(), try_, writable && chosen && moves_ == 0);
  save_->setEnabled(hasStreams());
  allow(store(), load_, writable);
}

void StreamsView::moveNode(int instruction, int stream) {
  streams_[at(instruction)] = stream;
  moves_ = 0;
  for (int i = 0; i < store().plan()->size(); ++i) moves_ += streams_[at(i)] != store().plan()->instruction(i)->stream();
  selection().select(Selection::ofInstruction(instruction));
  show();
}

QString StreamsView::partitionText() const {
  QJsonObject nodes;
  const auto& picture = canvas_->picture();
  if (!picture || !store().graph()) return {};
  for (int i = 0; i < picture->plan->size(); ++i)
    if (picture->movable[at(i)])
      nodes[QString::fromStdString(store().graph()->node(picture->plan->instruction(i)->node())->name())] = streams_[at(i)];
  const QJsonObject all{{QStringLiteral("streams"), picture->streams}, {QStringLiteral("nodes"), nodes}};
  return QString::fromUtf8(QJsonDocument(all).toJson(QJsonDocument::Compact));
}

}  // namespace stepscope

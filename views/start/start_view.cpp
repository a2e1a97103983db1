// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/start/start_view.h"

#include <QApplication>
#include <QDir>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QMouseEvent>
#include <QPainter>
#include <QPushButton>
#include <QStyledItemDelegate>
#include <QTimer>
#include <QVBoxLayout>
#include <utility>

#include "views/common/file_name.h"
#include "views/common/format.h"
#include "views/common/icons.h"
#include "views/common/tokens.h"
#include "views/common/worker_host.h"

namespace stepscope {
namespace {

constexpr int kRecording = Qt::UserRole + 2;  // project of the model
const QString kRuns = QStringLiteral("Runs");

// A file as two lines: its name, and where it is; at its right end the way to what was recorded of it.
class FileDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const override {
    return {100, qRound(3.3 * Metrics::current().unit)};
  }
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const Tokens& t = Tokens::current();
    const Metrics m = Metrics::current();
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    if (option.state & (QStyle::State_Selected | QStyle::State_MouseOver)) {
      painter->setPen(Qt::NoPen);
      painter->setBrush(option.state & QStyle::State_Selected ? t.select : t.hover);
      painter->drawRoundedRect(option.rect.adjusted(0, 1, 0, -1), 5, 5);
    }
    const QRect r = option.rect.adjusted(m.padding, 0, -m.padding, 0);
    const bool project = index.data(Qt::UserRole).toString().endsWith(QStringLiteral(".stepscope"));
    painter->drawPixmap(r.left(), r.center().y() - m.icon / 2,
                        iconPixmap(project ? QStringLiteral("save") : QStringLiteral("model"), t.muted, m.icon,
                                   painter->device()->devicePixelRatioF()));
    QRect text = r.adjusted(m.icon + m.padding, 4, 0, -4);
    painter->setPen(t.text);
    const QRect runs = runsOf(option, index);
    if (!runs.isEmpty()) {
      painter->setPen(t.accent);
      painter->drawText(runs, Qt::AlignCenter, kRuns);
      painter->setPen(t.text);
      text.setRight(runs.left() - m.padding);
    }
    painter->drawText(text, Qt::AlignTop | Qt::AlignLeft,
                      option.fontMetrics.elidedText(index.data().toString(), Qt::ElideMiddle, text.width()));
    painter->setFont(smallFont());
    painter->setPen(t.muted);
    painter->drawText(
        text, Qt::AlignBottom | Qt::AlignLeft,
        QFontMetrics(smallFont()).elidedText(index.data(Qt::UserRole + 1).toString(), Qt::ElideMiddle, text.width()));
    painter->restore();
  }
  // Whether the mouse went down on the way to the runs.
  bool onRuns() const { return onRuns_; }

 protected:
  bool editorEvent(QEvent* event, QAbstractItemModel* model, const QStyleOptionViewItem& option,
                   const QModelIndex& index) override {
    if (event->type() == QEvent::MouseButtonPress)
      onRuns_ = runsOf(option, index).contains(static_cast<QMouseEvent*>(event)->position().toPoint());
    return QStyledItemDelegate::editorEvent(event, model, option, index);
  }

 private:
  static QRect runsOf(const QStyleOptionViewItem& option, const QModelIndex& index) {
    if (index.data(kRecording).toString().isEmpty()) return {};
    const int width = option.fontMetrics.horizontalAdvance(kRuns) + 2 * Metrics::current().padding;
    return {option.rect.right() - width, option.rect.top(), width, option.rect.height()};
  }

  bool onRuns_ = false;
};

QLabel* heading(const QString& text) {
  auto* label = new QLabel(text);
  QFont strong = label->font();
  strong.setWeight(QFont::DemiBold);
  label->setFont(strong);
  label->setProperty("role", "muted");
  label->setTextFormat(Qt::PlainText);
  return label;
}

// Says that files can be dropped on the window; the window takes them.
class DropArea : public QPushButton {
 public:
  DropArea() {
    setAccessibleName(QStringLiteral("Open a model or a project"));
    setMinimumHeight(qRound(8.5 * Metrics::current().unit));
    setCursor(Qt::PointingHandCursor);
    setToolTip(QStringLiteral("Opens a model (.onnx) or a recorded project (.stepscope)  (Ctrl+O)"));
  }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const Tokens& t = Tokens::current();
    const Metrics m = Metrics::current();
    painter.setPen(QPen(underMouse() || hasFocus() ? t.accent : t.edge, 1.2, Qt::DashLine));
    painter.setBrush(underMouse() ? t.hover : t.panel);
    painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 8, 8);
    const int size = 2 * m.icon;
    painter.drawPixmap((width() - size) / 2, qRound(1.3 * m.unit),
                       iconPixmap(QStringLiteral("open"), t.accent, size, devicePixelRatioF()));
    painter.setPen(t.text);
    painter.drawText(QRect(0, qRound(1.3 * m.unit) + size, width(), 2 * m.unit), Qt::AlignCenter,
                     QStringLiteral("Open a model or a project, or drop it here"));
    painter.setPen(t.muted);
    painter.setFont(smallFont());
    painter.drawText(QRect(0, qRound(3.0 * m.unit) + size, width(), 2 * m.unit), Qt::AlignCenter,
                     QStringLiteral(".onnx  ·  .stepscope       Ctrl+O"));
  }
};

// One click opens; where two are made out of habit, the second would go to what stands there by then.
class SecondClick : public QObject {
 public:
  explicit SecondClick(QObject* parent) : QObject(parent) {
    over_.setSingleShot(true);
    connect(&over_, &QTimer::timeout, this, [this] { qApp->removeEventFilter(this); });
  }

  void expect() {
    qApp->installEventFilter(this);
    over_.start(QApplication::doubleClickInterval());
  }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (!watched->isWindowType()) return false;
    if (event->type() == QEvent::MouseButtonDblClick) return down_ = true;
    return event->type() == QEvent::MouseButtonRelease && std::exchange(down_, false);
  }

 private:
  QTimer over_;
  bool down_ = false;
};

constexpr int kFirst = 100;  // a list has its height before what stands below it gets the rest

}  // namespace

StartView::StartView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("start"), QStringLiteral("Start"), parent),
      recent_(new QListWidget),
      samples_(new QListWidget),
      samplesTitle_(heading(QStringLiteral("Samples"))),
      noRecent_(new QLabel(QStringLiteral("None yet. Models and recorded projects that you open are listed here."))),
      samplesGap_(new QWidget),
      machine_(new Details) {
  const Metrics m = Metrics::current();
  auto* title = new QLabel(QStringLiteral("Stepscope"));
  QFont large = title->font();
  large.setPointSizeF(large.pointSizeF() * 2.0);
  large.setWeight(QFont::DemiBold);
  title->setFont(large);
  auto* about = new QLabel(
      QStringLiteral("Open a model, build its training step in the open, and run it one node at a time or at full speed."));
  about->setProperty("role", "muted");
  about->setWordWrap(true);
  auto* drop = new DropArea;
  drop_ = drop;
  connect(drop, &QPushButton::clicked, &wishes(), &Wishes::openDialog);
  auto* second = new SecondClick(this);
  for (QListWidget* list : {recent_, samples_}) {
    auto* delegate = new FileDelegate(list);
    list->setItemDelegate(delegate);
    list->setFrameShape(QFrame::NoFrame);
    list->setMouseTracking(true);
    list->setTextElideMode(Qt::ElideMiddle);
    list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    list->viewport()->setAutoFillBackground(false);
    list->setStyleSheet(QStringLiteral("QListWidget { background: transparent; }"));
    connect(list, &QListWidget::itemActivated, this,
            [this](QListWidgetItem* item) { emit wishes().openPath(item->data(Qt::UserRole).toString()); });
    connect(list, &QListWidget::itemClicked, this, [this, second, delegate](QListWidgetItem* item) {
      second->expect();
      emit wishes().openPath(item->data(delegate->onRuns() ? kRecording : Qt::UserRole).toString());
    });
    list->setContextMenuPolicy(Qt::CustomContextMenu);
    connect(list, &QWidget::customContextMenuRequested, this, [this, list](const QPoint& at) { showMenu(*list, at); });
  }
  noRecent_->setProperty("role", "muted");
  noRecent_->setWordWrap(true);
  noRecent_->setObjectName(QStringLiteral("start_no_recent"));
  recent_->setObjectName(QStringLiteral("start_recent"));
  recent_->setAccessibleName(QStringLiteral("Recent models and projects"));
  samples_->setAccessibleName(QStringLiteral("Sample models"));
  machine_->setStyleSheet(QStringLiteral("QTextBrowser { background: transparent; border: 0; padding: 0; }"));
  machine_->document()->setDocumentMargin(0);

  auto* left = new QVBoxLayout;
  left->setSpacing(qRound(0.6 * m.unit));
  left->addWidget(drop);
  left->addSpacing(m.unit);
  left->addWidget(heading(QStringLiteral("Recent")));
  left->addWidget(noRecent_);
  left->addWidget(recent_, kFirst);
  left->addStretch(1);
  auto* right = new QVBoxLayout;
  right->setSpacing(qRound(0.6 * m.unit));
  right->addWidget(samplesTitle_);
  right->addWidget(samples_, kFirst);
  samplesGap_->setFixedHeight(m.unit);
  right->addWidget(samplesGap_);
  machineTitle_ = heading({});
  machineTitle_->setObjectName(QStringLiteral("start_machine_title"));
  right->addWidget(machineTitle_);
  right->addWidget(machine_, 1);
  columns_ = new QHBoxLayout;
  columns_->addLayout(left);
  columns_->addLayout(right);
  auto* middle = new QWidget;
  auto* page = new QVBoxLayout(middle);
  page->setContentsMargins(0, 0, 0, 0);
  page->setSpacing(qRound(0.6 * m.unit));
  auto* guide = new QPushButton(QStringLiteral("Guide (F1)"));
  guide->setObjectName(QStringLiteral("start_guide"));
  guide->setIcon(icon(QStringLiteral("info")));
  guide->setToolTip(QStringLiteral("Journeys with samples, a page per view, what the numbers mean; needs no network"));
  connect(guide, &QPushButton::clicked, this, [this] { emit wishes().command(QStringLiteral("guide")); });
  auto* top = new QHBoxLayout;
  top->addWidget(title);
  top->addStretch(1);
  top->addWidget(guide, 0, Qt::AlignBottom);
  page->addLayout(top);
  page->addWidget(about);
  page->addSpacing(m.unit);
  page->addLayout(columns_, 1);
  middle->setMaximumWidth(86 * m.unit);
  auto* outer = new QHBoxLayout(this);
  outer->setContentsMargins(3 * m.unit, qRound(3.2 * m.unit), 3 * m.unit, 2 * m.unit);
  outer->addStretch(1);
  outer->addWidget(middle, 20);
  outer->addStretch(1);
  connect(&store().project(), &ProjectFacts::filesChanged, this, &StartView::fillFiles);
  connect(&store(), &SnapshotStore::machineChanged, this, &StartView::fillMachine);
  connect(&store(), &SnapshotStore::workerChanged, this, &StartView::fillMachine);
  connect(&WorkerHost::of(store()), &WorkerHost::changed, this, &StartView::fillMachine);
  stack(false);
  fillFiles();
  fillMachine();
}

// What opens something, and the rest beside it, or below it where there is no room for two columns.
void StartView::stack(bool stacked) {
  const Metrics m = Metrics::current();
  columns_->setDirection(stacked ? QBoxLayout::TopToBottom : QBoxLayout::LeftToRight);
  columns_->setSpacing(stacked ? m.unit : 4 * m.unit);
  columns_->setStretch(0, stacked ? 0 : 3);
  columns_->setStretch(1, stacked ? 1 : 2);
}

void StartView::resizeEvent(QResizeEvent* event) {
  constexpr int kLeast = 54;  // units
  stack(width() < kLeast * Metrics::current().unit);
  View::resizeEvent(event);
}

void StartView::fillFiles() {
  recent_->clear();
  samples_->clear();
  for (const FileEntry& file : store().project().files()) {
    auto* item = new QListWidgetItem(format::fileName(file.path), file.sample ? samples_ : recent_);
    item->setData(Qt::UserRole, file.path);
    item->setData(Qt::UserRole + 1,
                  file.detail.isEmpty() ? format::visible(QFileInfo(file.path).path()) : format::visible(file.detail));
    item->setData(kRecording, file.recording);
    QString tip = format::visible(file.path);
    if (!file.recording.isEmpty()) tip += QStringLiteral("\nRuns: ") + format::visible(file.recording);
    item->setToolTip(QStringLiteral("<p style='white-space:pre'>%1</p>").arg(tip.toHtmlEscaped()));
    // Samples are all called model.onnx: their folder tells them apart.
    if (file.sample) item->setText(format::visible(QFileInfo(file.path).dir().dirName()));
  }
  noRecent_->setVisible(recent_->count() == 0);
  samplesTitle_->setVisible(samples_->count() > 0);
  samplesGap_->setVisible(samples_->count() > 0);
  // What was open last is one Enter away.
  if (recent_->count() > 0) recent_->setCurrentRow(0);
  setFocusProxy(recent_->count() > 0 ? static_cast<QWidget*>(recent_) : drop_);
  for (QListWidget* list : {recent_, samples_}) {
    // As high as its files where there is room; a long list scrolls, and never makes the window higher than a small screen.
    constexpr int kMost = 9, kLeast = 2;
    const int row = std::max(0, list->sizeHintForRow(0));
    list->setVisible(list->count() > 0);
    list->setMinimumHeight(std::min(list->count(), kLeast) * row + 4);
    list->setMaximumHeight(std::min(list->count(), kMost) * row + 4);
  }
}

void StartView::showMenu(const QListWidget& list, const QPoint& at) {
  const QListWidgetItem* item = list.itemAt(at);
  if (!item) return;
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  const auto offer = [this, menu, item](const QString& text, int role) {
    const QString path = item->data(role).toString();
    if (!path.isEmpty()) menu->addAction(text, this, [this, path] { emit wishes().openPath(path); });
  };
  offer(QStringLiteral("Open"), Qt::UserRole);
  offer(QStringLiteral("Open its recorded runs"), kRecording);
  menu->popup(list.viewport()->mapToGlobal(at));
}

void StartView::fillMachine() {
  const Tokens& t = Tokens::current();
  const QString& host = WorkerHost::of(store()).name();
  machineTitle_->setText(host.isEmpty() ? QStringLiteral("This machine")
                                        : QStringLiteral("Machine of the worker: %1").arg(format::visible(host)));
  machine_->setAccessibleName(machineTitle_->text());
  machine_->begin();
  if (const MachinePtr& machine = store().machine()) {
    machine_->row(QStringLiteral("Processor"), Details::text(format::visible(machine->cpu())) +
                                                   Details::quiet(QStringLiteral("  %1 cores").arg(machine->cores())));
    machine_->row(QStringLiteral("Memory"), Details::text(format::bytes(machine->memory_bytes())));
    QStringList features;
    for (const auto& f : machine->cpu_features()) features << format::visible(f);
    machine_->row(QStringLiteral("Features"), Details::quiet(features.join(QStringLiteral(" "))));
    machine_->row(QStringLiteral("GPU"),
                  machine->gpu().empty() ? Details::quiet(machine->gpu_note().empty() ? QStringLiteral("none")
                                                                                      : format::visible(machine->gpu_note()))
                                         : Details::text(format::visible(machine->gpu())) +
                                               Details::quiet(QStringLiteral("  ") + format::visible(machine->gpu_note())));
    QStringList libraries;
    for (const auto& l : machine->libraries()) libraries << format::visible(l);
    if (!libraries.isEmpty())
      machine_->row(QStringLiteral("Libraries"), Details::quiet(libraries.join(QStringLiteral(", "))));
    machine_->row(QStringLiteral("Stepscope"), Details::text(format::visible(machine->version())));
  } else if (store().workerState() == WorkerState::kDead) {
    machine_->paragraph(Details::coloured(store().workerText(), t.error));
  } else {
    machine_->paragraph(Details::quiet(QStringLiteral("Asking the worker …")));
  }
  machine_->end();
}

void StartView::paintEvent(QPaintEvent*) { QPainter(this).fillRect(rect(), Tokens::current().window); }

}  // namespace stepscope

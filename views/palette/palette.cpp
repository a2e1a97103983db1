// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/palette/palette.h"

#include <QApplication>
#include <QKeyEvent>
#include <QLabel>
#include <QPainter>
#include <QPointer>
#include <QStyledItemDelegate>
#include <QThreadPool>
#include <QVBoxLayout>
#include <map>

#include "views/common/format.h"
#include "views/common/icons.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

constexpr std::size_t kMost = 100;
enum Role { kDetail = Qt::UserRole, kShortcut, kSwatch, kIndex };

// How well the title of a command answers a query that occurs in what it says; less is better.
int rankOf(const QString& title, const QString& query) {
  if (query.isEmpty()) return 0;
  if (title.compare(query, Qt::CaseInsensitive) == 0) return 0;
  if (title.startsWith(query, Qt::CaseInsensitive)) return 1;
  if (title.contains(' ' + query, Qt::CaseInsensitive)) return 2;
  return title.contains(query, Qt::CaseInsensitive) ? 3 : 4;
}

class EntryDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const override {
    return {100, qRound(2.1 * Metrics::current().unit)};
  }
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const Tokens& t = Tokens::current();
    const Metrics m = Metrics::current();
    painter->save();
    if (option.state & QStyle::State_Selected) painter->fillRect(option.rect, t.select);
    QRect r = option.rect.adjusted(m.padding, 0, -m.padding, 0);
    const QString category = index.data(kSwatch).toString();
    if (!category.isEmpty()) {
      const int size = qRound(0.62 * m.unit);
      painter->drawPixmap(r.left(), r.center().y() - size / 2,
                          swatch(t.category(category), size, painter->device()->devicePixelRatioF()));
      r.setLeft(r.left() + size + qRound(0.6 * m.unit));
    }
    const QString shortcut = index.data(kShortcut).toString();
    painter->setFont(smallFont());
    if (!shortcut.isEmpty()) {
      painter->setPen(t.muted);
      painter->drawText(r, Qt::AlignRight | Qt::AlignVCenter, shortcut);
      r.setRight(r.right() - QFontMetrics(smallFont()).horizontalAdvance(shortcut) - m.padding);
    }
    painter->setFont(option.font);
    painter->setPen(index.flags() & Qt::ItemIsEnabled ? t.text : t.faint);
    const QString title = option.fontMetrics.elidedText(index.data().toString(), Qt::ElideMiddle, r.width());
    painter->drawText(r, Qt::AlignLeft | Qt::AlignVCenter, title);
    r.setLeft(r.left() + option.fontMetrics.horizontalAdvance(title) + m.padding);
    if (r.width() > 40) {
      painter->setFont(smallFont());
      painter->setPen(t.muted);
      painter->drawText(r, Qt::AlignLeft | Qt::AlignVCenter,
                        QFontMetrics(smallFont()).elidedText(index.data(kDetail).toString(), Qt::ElideMiddle, r.width()));
    }
    painter->restore();
  }
};

}  // namespace

Palette::Palette(const ViewContext& context, QList<QAction*> actions, QWidget* parent)
    : QFrame(parent),
      context_(context),
      actions_(std::move(actions)),
      box_(new QLineEdit),
      list_(new QListWidget),
      hint_(new QLabel) {
  setObjectName(QStringLiteral("palette"));
  setAccessibleName(QStringLiteral("Command palette"));
  const Metrics m = Metrics::current();
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(qRound(0.6 * m.unit), qRound(0.6 * m.unit), qRound(0.6 * m.unit), qRound(0.4 * m.unit));
  layout->setSpacing(qRound(0.4 * m.unit));
  box_->setObjectName(QStringLiteral("palette_box"));
  box_->setPlaceholderText(QStringLiteral("Node, tensor, source line or number      > commands      : SQL"));
  box_->setAccessibleName(QStringLiteral("What to find"));
  list_->setAccessibleName(QStringLiteral("What was found"));
  list_->setItemDelegate(new EntryDelegate(list_));
  list_->setFrameShape(QFrame::NoFrame);
  list_->setUniformItemSizes(true);
  list_->setFocusPolicy(Qt::NoFocus);
  list_->setMouseTracking(true);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  hint_->setProperty("role", "faint");
  hint_->setFont(smallFont());
  hint_->setContentsMargins(qRound(0.75 * m.unit), 0, 0, 0);  // below the names
  layout->addWidget(box_);
  layout->addWidget(list_, 1);
  layout->addWidget(hint_);
  box_->installEventFilter(this);
  connect(box_, &QLineEdit::textChanged, this, &Palette::search);
  connect(box_, &QLineEdit::returnPressed, this, &Palette::choose);
  connect(list_, &QListWidget::itemClicked, this, &Palette::choose);
  const auto stale = [this] {
    stale_ = true;
    finder_ = nullptr;
  };
  connect(&context_.store, &SnapshotStore::graphChanged, this, stale);
  connect(&context_.store, &SnapshotStore::planChanged, this, stale);
  hide();
}

void Palette::open(const QString& text) {
  const int unit = Metrics::current().unit;
  const int w = std::min(parentWidget()->width() - 40, 56 * unit);
  const int h = std::min(parentWidget()->height() - 120, 34 * unit);
  setGeometry((parentWidget()->width() - w) / 2, qRound(4.2 * unit), w, h);
  box_->setText(text);
  if (!isVisible()) before_ = QApplication::focusWidget();
  show();
  raise();
  box_->setFocus();
  box_->setCursorPosition(static_cast<int>(text.size()));
  index();
  search();
}

void Palette::index() {
  if (!stale_ || indexing_ || !context_.store.graph()) return;
  indexing_ = true;
  stale_ = false;
  QThreadPool::globalInstance()->start(
      [self = QPointer<Palette>(this), graph = context_.store.graph(), plan = context_.store.plan()] {
        auto finder = Finder::make(graph, plan);
        QMetaObject::invokeMethod(qApp, [self, finder] {
          if (!self) return;
          self->indexing_ = false;
          if (!self->stale_) self->finder_ = finder;
          self->index();
          if (self->isVisible()) self->search();
        });
      });
}

void Palette::search() {
  list_->clear();
  found_.clear();
  const QString text = box_->text();
  if (text.startsWith('>')) {
    const QString query = text.mid(1).simplified();
    const QStringList words = query.split(' ', Qt::SkipEmptyParts);
    std::multimap<int, QAction*> matches;  // the best first, those of one rank as they come
    for (QAction* action : std::as_const(actions_)) {
      const QString full = action->property("group").toString() + ' ' + action->text() + ' ' + action->statusTip();
      if (std::all_of(words.begin(), words.end(),
                      [&full](const QString& w) { return full.contains(w, Qt::CaseInsensitive); }))
        matches.emplace(rankOf(action->text().remove('&').remove(QStringLiteral("…")), query), action);
    }
    for (const auto& [rank, action] : matches) {
      auto* item = new QListWidgetItem(action->text(), list_);
      item->setData(kDetail, action->statusTip());
      item->setData(kShortcut, action->shortcut().toString(QKeySequence::NativeText));
      item->setData(kIndex, QVariant::fromValue<void*>(action));
      if (!action->isEnabled()) item->setFlags(item->flags() & ~Qt::ItemIsEnabled);
    }
    hint_->setText(list_->count() == 0 ? QStringLiteral("No command matches") : QStringLiteral("Return runs the command"));
  } else if (text.startsWith(':')) {
    hint_->setText(QStringLiteral("Return opens the query in the SQL view and runs it"));
  } else if (!context_.store.graph()) {
    hint_->setText(QStringLiteral("No model is open; > lists the commands"));
  } else if (!finder_) {
    hint_->setText(QStringLiteral("Reading the names …"));
  } else {
    found_ = finder_->find(text, kMost);
    for (std::size_t i = 0; i < found_.size(); ++i) {
      auto* item = new QListWidgetItem(found_[i].title, list_);
      item->setData(kDetail, found_[i].detail);
      item->setData(kSwatch, found_[i].category);
      item->setData(kIndex, static_cast<int>(i));
    }
    hint_->setText(
        text.trimmed().isEmpty() ? QStringLiteral("%1 names").arg(format::count(static_cast<std::int64_t>(finder_->size())))
        : found_.empty()
            ? QStringLiteral("No match among %1 names").arg(format::count(static_cast<std::int64_t>(finder_->size())))
        : found_.size() >= kMost ? QStringLiteral("The best %1; go on typing").arg(kMost)
                                 : QStringLiteral("%1 found").arg(found_.size()));
  }
  list_->setCurrentRow(0);
}

void Palette::dismiss() {
  hide();
  if (before_ && before_->isVisible()) {
    before_->setFocus();
  } else {
    parentWidget()->setFocus();
  }
}

void Palette::choose() {
  const QString text = box_->text();
  const QListWidgetItem* item = list_->currentItem();
  if (text.startsWith(':')) {
    dismiss();
    emit context_.wishes.sql(text.mid(1).trimmed());
    return;
  }
  if (!item) return;
  if (text.startsWith('>')) {
    auto* action = static_cast<QAction*>(item->data(kIndex).value<void*>());
    if (!action->isEnabled()) return;
    dismiss();
    action->trigger();
    return;
  }
  const Found found = found_[static_cast<std::size_t>(item->data(kIndex).toInt())];
  dismiss();
  context_.selection.select(found.target());
}

bool Palette::eventFilter(QObject* object, QEvent* event) {
  if (event->type() == QEvent::KeyPress) {
    auto* key = static_cast<QKeyEvent*>(event);
    if (key->key() == Qt::Key_Escape) {
      dismiss();
      return true;
    }
    if (key->key() == Qt::Key_Down || key->key() == Qt::Key_Up || key->key() == Qt::Key_PageDown ||
        key->key() == Qt::Key_PageUp) {
      QApplication::sendEvent(list_, key);
      return true;
    }
  }
  if (event->type() == QEvent::FocusOut && isVisible()) hide();
  return QFrame::eventFilter(object, event);
}

void Palette::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const Tokens& t = Tokens::current();
  painter.setPen(QPen(t.edge, 1));
  painter.setBrush(t.panel);
  painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 7, 7);
}

}  // namespace stepscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/batch/contents_page.h"

#include <QHeaderView>
#include <QScrollArea>
#include <QVBoxLayout>
#include <algorithm>

#include "views/batch/batch_inputs.h"
#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

void dress(QTableView& table) {
  const Metrics m = Metrics::current();
  table.setFrameShape(QFrame::NoFrame);
  table.setShowGrid(false);
  table.setEditTriggers(QAbstractItemView::NoEditTriggers);
  table.setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  table.setCornerButtonEnabled(false);
  table.horizontalHeader()->setMinimumSectionSize(m.unit);
  table.horizontalHeader()->setDefaultSectionSize(qRound(3.6 * m.unit));
  table.horizontalHeader()->setFixedHeight(qRound(1.7 * m.unit));
  table.verticalHeader()->setMinimumSectionSize(qRound(1.6 * m.unit));
  table.verticalHeader()->setDefaultSectionSize(qRound(1.6 * m.unit));
  table.verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  for (QHeaderView* header : {table.horizontalHeader(), table.verticalHeader()}) header->setFont(smallFont());
}

std::int64_t wholeBytes(const TensorValues& values) {
  std::int64_t bytes = TensorValues::elementBytes(values.tensor()->dtype());
  for (const auto extent : values.tensor()->dims()) bytes *= std::max<std::int64_t>(1, extent);
  return bytes;
}

// Whether the samples are cut off within themselves.
bool partly(const TensorValues& values) {
  const auto& dims = values.tensor()->dims();
  for (std::size_t axis = 1; axis < values.extent().size() && static_cast<int>(axis) < dims.size(); ++axis)
    if (values.extent()[axis] < dims[static_cast<int>(axis)]) return true;
  return false;
}

}  // namespace

ContentsPage::ContentsPage(const ViewContext& context, const BatchSource& source, QWidget* parent)
    : QWidget(parent),
      context_(context),
      source_(source),
      caption_(new Details),
      pages_(new QStackedWidget),
      tokens_(new QTableView),
      tokenTable_(new TokenTable(this)),
      pictures_(new PictureGrid) {
  caption_->setFitContents(true);
  caption_->setAccessibleName(QStringLiteral("Shown input"));
  tokens_->setModel(tokenTable_);
  tokens_->setObjectName(QStringLiteral("batch_tokens"));
  tokens_->setAccessibleName(QStringLiteral("Elements beside their mask"));
  dress(*tokens_);
  auto* scroll = new QScrollArea;
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setWidget(pictures_);
  pages_->addWidget(tokens_);
  pages_->addWidget(scroll);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(caption_);
  layout->addWidget(pages_, 1);
  layout->addStretch(0);
}

int ContentsPage::shownInput() const {
  const std::vector<int> all = batch::inputs(context_.store);
  if (std::find(all.begin(), all.end(), context_.selection.selection().value) != all.end())
    return context_.selection.selection().value;
  for (const int rank : {4, 2, 1}) {
    const auto it = std::find_if(all.begin(), all.end(), [&](int id) {
      return context_.store.graph()->value(id)->dims_size() == rank && batch::info(context_.store, id);
    });
    if (it != all.end()) return *it;
  }
  return all.empty() ? -1 : all.front();
}

void ContentsPage::fetch() {
  const SnapshotStore& store = context_.store;
  const int input = store.graph() && source_.live() ? shownInput() : -1;
  if (input < 0) return;
  for (const int id : {input, batch::maskOf(store, input), batch::labelsOf(store, input)}) {
    if (id < 0 || asked_.contains(id)) continue;
    std::vector<qint64> begin, extent;
    for (const std::string& dim : store.graph()->value(id)->dims()) {
      begin.push_back(0);
      extent.push_back(std::max<qint64>(1, QString::fromStdString(dim).toLongLong()));
    }
    const TensorPtr known = store.tensor(id);  // a graph with symbolic extents does not tell them
    if (known && known->dims_size() == static_cast<int>(extent.size())) {
      extent.assign(known->dims().begin(), known->dims().end());
      asked_.insert(id);  // for all of it; a part that another view looks at is not that
    }
    emit context_.wishes.fetchTensor(id, begin, extent);
  }
}

void ContentsPage::take(int value) {
  const TensorPtr tensor = context_.store.tensor(value);
  if (!tensor || tensor->data().empty()) return;
  // Another view may look at a part of it: only what begins at its beginning, and is no single element of many, serves here.
  const bool begins = std::all_of(tensor->begin().begin(), tensor->begin().end(), [](auto b) { return b == 0; });
  const TensorValues values(tensor);
  double all = 1;  // whatever extents were told
  for (const auto d : tensor->dims()) all *= static_cast<double>(std::max<std::int64_t>(1, d));
  const TensorPtr held = contents(value);
  if (!begins || (values.count() == 1 && all > 1) ||
      (held && held->step() == tensor->step() && held->data().size() > tensor->data().size()))
    return;
  whole_[value] = tensor;
  refresh();
}

TensorPtr ContentsPage::contents(int input) const {
  if (!source_.live()) return source_.contents(input);
  const auto it = whole_.find(input);
  return it == whole_.end() ? nullptr : it->second;
}

void ContentsPage::goTo(int sample, int place) {
  setWorst(sample);
  wanted_ = {sample, place};
  refresh();
}

void ContentsPage::goToWanted() {
  const QModelIndex at = tokenTable_->index(wanted_.first, wanted_.second);
  if (!at.isValid()) return;
  wanted_ = {-1, -1};
  tokens_->setCurrentIndex(at);
  tokens_->scrollTo(at);
}

void ContentsPage::refresh() {
  if (!isVisible()) return;
  const SnapshotStore& store = context_.store;
  const int input = store.graph() ? shownInput() : -1;
  const TensorValues values(contents(input));
  const bool pictures = isPictures(values.extent()) && values.count() > 0 && !partly(values);
  const bool table = values.integral() && values.count() > 0 && !values.extent().empty() && values.extent().size() <= 2;
  pages_->setVisible(pictures || table);
  caption_->begin();
  if (input < 0) {
    caption_->paragraph(Details::quiet(QStringLiteral("The model has no inputs.")));
  } else if (!source_.missing().isEmpty()) {
    caption_->paragraph(Details::quiet(source_.missing()));
  } else if (!source_.live() && values.count() == 0) {
    caption_->paragraph(Details::quiet(
        !source_.recorded()
            ? QStringLiteral("No batch was recorded: the option record.batch is off, or an older version wrote the file.")
        : source_.kept(input)
            ? QStringLiteral(
                  "Of the contents nothing was kept: the option record.batch.bytes says how many bytes of each input are.")
            : QStringLiteral("This step recorded nothing of %1.").arg(names::value(*store.graph(), input))));
  } else if (values.count() == 0) {
    const TensorPtr known = store.tensor(input);
    caption_->paragraph(Details::quiet(known && !known->unavailable().empty()
                                           ? format::visible(known->unavailable())
                                           : QStringLiteral("No batch was fed yet: run or step.")));
  } else if (pictures) {
    const int labels = batch::labelsOf(store, input);
    pictures_->set(values, TensorValues(labels < 0 ? nullptr : contents(labels)), worst_);
    pages_->setCurrentIndex(1);
    QString text = QStringLiteral("%1: %2 of %3 samples")
                       .arg(names::value(*store.graph(), input))
                       .arg(pictures_->pictures())
                       .arg(values.tensor()->dims(0));
    if (labels >= 0) text += QStringLiteral(", below each its %1").arg(names::value(*store.graph(), labels));
    caption_->paragraph(Details::quiet(text));
  } else if (table) {
    const int mask = batch::maskOf(store, input);
    const TensorValues beside(mask < 0 ? nullptr : contents(mask));
    // The table is made anew whenever more of it arrives; where one stood in it stays.
    if (wanted_.first < 0) wanted_ = {tokens_->currentIndex().row(), tokens_->currentIndex().column()};
    tokenTable_->set(values, beside, std::nullopt);
    pages_->setCurrentIndex(0);
    goToWanted();
    QString text = names::value(*store.graph(), input);
    if (beside.count() > 0) text += QStringLiteral(": in brackets where %1 is 0").arg(names::value(*store.graph(), mask));
    if (values.extent().size() == 2 && tokenTable_->rowCount() < values.tensor()->dims(0))
      text += QStringLiteral("; the first %1 of %2 rows").arg(tokenTable_->rowCount()).arg(values.tensor()->dims(0));
    caption_->paragraph(Details::quiet(text));
  } else if (!source_.live() && partly(values)) {
    caption_->paragraph(Details::quiet(
        QStringLiteral(
            "%1: only its first %2 of %3 were kept, less than one sample. The option record.batch.bytes keeps more.")
            .arg(names::value(*store.graph(), input),
                 format::bytes(static_cast<std::int64_t>(values.tensor()->data().size())),
                 format::bytes(wholeBytes(values)))));
  } else {
    caption_->paragraph(Details::quiet(
        QStringLiteral("%1: neither images of 1 or 3 channels nor integers in rows. The view Tensor shows its elements.")
            .arg(names::value(*store.graph(), input))));
  }
  caption_->end();
}

}  // namespace stepscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/timeline/timeline_canvas.h"

#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "views/common/format.h"
#include "views/common/names.h"
#include "views/timeline/device_words.h"
#include "views/timeline/exchange_words.h"

namespace stepscope {
namespace {

QString workName(const TimelineWork& work) {
  switch (work.record.kind()) {
    case snapshot::DeviceRecord::COPY_IN: return QStringLiteral("copy to the device");
    case snapshot::DeviceRecord::COPY_OUT: return QStringLiteral("copy from the device");
    case snapshot::DeviceRecord::COPY_WITHIN: return QStringLiteral("copy within the device");
    case snapshot::DeviceRecord::FILL: return QStringLiteral("fill");
    case snapshot::DeviceRecord::STREAM_WAIT: return QStringLiteral("a stream will wait for an event");
    case snapshot::DeviceRecord::HOST_WAIT:
      return QStringLiteral("host waits for %1").arg(format::visible(work.record.what()));
    case snapshot::DeviceRecord::OVERHEAD: return format::visible(work.record.what());
    default: return work.kernel.name().empty() ? QStringLiteral("kernel") : format::visible(work.kernel.name());
  }
}

}  // namespace

TimelineCanvas::TimelineCanvas(QWidget* parent) : AxisCanvas(parent), text_(smallFont()) {
  setAccessibleName(QStringLiteral("Timeline"));
  connect(this, &AxisCanvas::rangePicked, this, [this](double begin, double end) {
    if (!model_) return;
    emit timePicked(static_cast<std::int64_t>(axis().toClock(begin, true)),
                    static_cast<std::int64_t>(axis().toClock(end, false)));
  });
}

void TimelineCanvas::setModel(std::shared_ptr<const TimelineModel> model) {
  // What is recorded is followed as long as nobody looked elsewhere.
  const auto all = [](const TimelineModel& m) {
    return std::pair(m.axis().toPlace(static_cast<double>(m.presentBegin())),
                     m.axis().toPlace(static_cast<double>(m.end())));
  };
  const bool follows = !model_ || model_->sliceCount() == 0 || all(*model_) == std::pair(viewBegin(), viewEnd());
  model_ = std::move(model);
  hoveredRow_ = hoveredSlice_ = -1;
  if (model_) setLimits(axis().toPlace(static_cast<double>(model_->begin())), all(*model_).second);
  if (model_ && follows) showRange(all(*model_).first, all(*model_).second);
  scroll(0);
  update();
}

void TimelineCanvas::setSelected(int instruction, std::vector<int> related, std::unordered_set<int> group) {
  selected_ = instruction;
  related_ = std::move(related);
  group_ = std::move(group);
  update();
}

void TimelineCanvas::setRange(std::int64_t begin, std::int64_t end) {
  rangeBegin_ = begin;
  rangeEnd_ = end;
  update();
}

void TimelineCanvas::showInstruction(int instruction) {
  int row = 0, slice = 0;
  if (!model_ || !model_->find(instruction, &row, &slice)) return;
  const TimelineSlice& s = model_->rows()[static_cast<std::size_t>(row)].slices[static_cast<std::size_t>(slice)];
  const double begin = axis().toPlace(static_cast<double>(s.begin)), end = axis().toPlace(static_cast<double>(s.end));
  const double span = std::max(2000.0, 12.0 * (end - begin)), middle = (begin + end) / 2;
  showRange(middle - span / 2, middle + span / 2);
}

void TimelineCanvas::showTime(std::int64_t begin, std::int64_t end) {
  if (model_) showRange(axis().toPlace(static_cast<double>(begin)), axis().toPlace(static_cast<double>(end)));
}

std::int64_t TimelineCanvas::timeAt(double x) const { return static_cast<std::int64_t>(axis().toClock(toValue(x), true)); }

double TimelineCanvas::rowHeight() const {
  const double unit = Metrics::current().unit;
  const auto count = static_cast<double>(std::max<std::size_t>(1, model_ ? model_->rows().size() : 1));
  return std::clamp(std::floor((height() - 3.7 * unit) / count), 1.8 * unit, 4.4 * unit);
}

QRectF TimelineCanvas::plot() const {
  const double unit = Metrics::current().unit;
  return {11.5 * unit, 3.2 * unit, std::max(20.0, width() - 12.3 * unit), std::max(20.0, height() - 3.6 * unit)};
}

double TimelineCanvas::rowTop(int row) const { return area().top() + row * rowHeight() - offset_; }

bool TimelineCanvas::dragPicks(QPointF pixel) const { return pixel.y() >= area().top(); }

bool TimelineCanvas::scroll(double pixels) {
  const double most = model_ ? std::max(0.0, static_cast<double>(model_->rows().size()) * rowHeight() - area().height()) : 0;
  const double before = offset_;
  offset_ = std::clamp(offset_ + pixels, 0.0, most);
  if (offset_ != before) update();
  return most > 0;
}

QRectF TimelineCanvas::rectOf(int row, const TimelineSlice& s) const {
  const double x0 = xOf(s.begin), x1 = xOf(s.end);
  return {x0, rowTop(row) + 3, std::max(1.5, x1 - x0 - (x1 - x0 > 3 ? 0.7 : 0)), rowHeight() - 6};
}

bool TimelineCanvas::sliceAt(QPointF pixel, int* row, int* slice) const {
  if (!model_ || !area().contains(pixel)) return false;
  *row = static_cast<int>((pixel.y() - area().top() + offset_) / rowHeight());
  if (*row < 0 || *row >= static_cast<int>(model_->rows().size())) return false;
  const TimelineRow& r = model_->rows()[static_cast<std::size_t>(*row)];
  *slice = model_->at(r, timeAt(pixel.x()));
  if (*slice < 0) *slice = model_->at(r, timeAt(pixel.x() - 2));
  return *slice >= 0;
}

int TimelineCanvas::stepAt(QPointF pixel) const {
  if (!model_ || pixel.y() >= area().top()) return -1;
  const std::int64_t at = timeAt(pixel.x());
  for (std::size_t i = 0; i < model_->steps().size(); ++i)
    if (at >= model_->steps()[i].begin && at <= model_->steps()[i].end) return static_cast<int>(i);
  return -1;
}

void TimelineCanvas::hover(QPointF pixel, bool inside) {
  int row = -1, slice = -1;
  if (!inside || !sliceAt(pixel, &row, &slice)) row = slice = -1;
  if (row == hoveredRow_ && slice == hoveredSlice_) return;
  hoveredRow_ = row;
  hoveredSlice_ = slice;
  setCursor(slice >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
  update();
}

QString TimelineCanvas::nameOf(int step, int own) const {
  const snapshot::Instruction* in = model_->ran(step, own);
  return in == nullptr ? QStringLiteral("instruction %1").arg(own)
                       : format::visible(in->label().empty() ? in->op() : in->label());
}

QString TimelineCanvas::tipAt(QPointF pixel) const {
  if (const auto cuts = cutsAt(pixel); !cuts.empty()) return cutTip(cuts);
  int row = 0, slice = 0;
  if (!sliceAt(pixel, &row, &slice)) {
    const int step = stepAt(pixel);
    if (step < 0) return {};
    const TimelineStep& s = model_->steps()[static_cast<std::size_t>(step)];
    return QStringLiteral("step %1\n%2").arg(s.step).arg(format::time(s.end - s.begin - s.waiting)) +
           (s.waiting > 0 ? QStringLiteral("\nand %1 paused, cut out of the axis (%2)")
                                .arg(format::time(s.waiting), format::timeExact(s.waiting))
                          : QString()) +
           (s.warmUp ? QStringLiteral("\nwarm-up: the first step of its plan, left out of sums and statistics")
                     : QString()) +
           (s.other ? QStringLiteral("\nran under another plan than the one that is shown") : QString()) +
           (s.hasLoss ? QStringLiteral("\nloss %1").arg(format::number(s.loss)) : QString()) +
           (s.device.rung().empty() ? QString() : '\n' + deviceLines(s.device).join('\n'));
  }
  const TimelineSlice& s = model_->rows()[static_cast<std::size_t>(row)].slices[static_cast<std::size_t>(slice)];
  if (s.exchange >= 0) return exchangeTip(*model_, s);
  if (s.work >= 0) return workTip(model_->work()[static_cast<std::size_t>(s.work)]);
  QStringList lines{QStringLiteral("%1  %2").arg(format::count(s.own), nameOf(s.step, s.own)),
                    QStringLiteral("%1 (%2)").arg(format::time(s.end - s.begin), format::timeExact(s.end - s.begin))};
  if (const snapshot::Instruction* in = model_->ran(s.step, s.own)) {
    if (const QString rate = format::flopRate(in->flops(), s.end - s.begin); !rate.isEmpty()) lines << rate;
    lines << QStringLiteral("%1 read, %2 written · %3")
                 .arg(format::bytes(in->bytes_read()), format::bytes(in->bytes_written()),
                      format::visible(in->implementation()));
  }
  if (model_->ranks() > 1) lines << QStringLiteral("rank %1").arg(model_->rows()[static_cast<std::size_t>(row)].rank);
  const std::int64_t begun = model_->steps()[static_cast<std::size_t>(s.step)].begin, cut = axis().cutWithin(begun, s.begin);
  lines << QStringLiteral("step %1 · %2 after its begin%3")
               .arg(model_->steps()[static_cast<std::size_t>(s.step)].step)
               .arg(format::time(s.begin - begun - cut),
                    cut > 0 ? QStringLiteral(", without %1 paused").arg(format::time(cut)) : QString());
  if (model_->steps()[static_cast<std::size_t>(s.step)].other)
    lines << (s.instruction < 0
                  ? QStringLiteral("of another plan: the one that is shown has no such instruction")
                  : QStringLiteral("of another plan: in the one that is shown it is %1").arg(format::count(s.instruction)));
  return lines.join('\n');
}

QString TimelineCanvas::workTip(const TimelineWork& work) const {
  const snapshot::DeviceRecord& r = work.record;
  const std::int64_t ns = r.end_ns() - r.begin_ns();
  QStringList lines{workName(work)};
  if (work.own >= 0)
    lines << QStringLiteral("of instruction %1  %2").arg(format::count(work.own), nameOf(work.step, work.own));
  else
    lines << (r.kind() == snapshot::DeviceRecord::OVERHEAD
                  ? QStringLiteral("overhead of recording or of the driver, of no instruction")
                  : QStringLiteral("of no instruction: for the end of the step, or for memory"));
  lines << (r.stream() >= 0
                ? QStringLiteral("%1 on stream %2 (%3)").arg(format::time(ns)).arg(r.stream()).arg(format::timeExact(ns))
                : QStringLiteral("%1 (%2)").arg(format::time(ns), format::timeExact(ns)));
  if (work.onStream() && r.called_ns() > 0)
    lines << QStringLiteral("called in %1, waited %2 from there to its begin")
                 .arg(format::time(r.returned_ns() - r.called_ns()), format::time(r.begin_ns() - r.returned_ns()));
  if (r.bytes() > 0) lines << format::bytesExact(r.bytes());
  if (const snapshot::DeviceKernel& k = work.kernel; k.blocks() > 0) {
    lines << QStringLiteral("%1 blocks of %2 threads").arg(format::count(k.blocks())).arg(k.threads());
    if (k.registers() > 0)
      lines << QStringLiteral("%1 registers of a thread, %2 of shared memory")
                   .arg(k.registers())
                   .arg(format::bytes(k.shared_bytes()));
    if (k.occupancy() > 0) lines << QStringLiteral("occupancy %1").arg(format::percent(k.occupancy(), 1));
  }
  if (r.has_counters()) {
    const snapshot::DeviceCounters& c = r.counters();
    lines << QStringLiteral("read %1, wrote %2 (counted)")
                 .arg(format::bytes(c.read_bytes()), format::bytes(c.written_bytes()));
    if (c.has_occupancy()) lines << QStringLiteral("achieved occupancy %1").arg(format::percent(c.occupancy(), 1));
    if (c.has_tensor()) lines << QStringLiteral("tensor cores busy %1").arg(format::percent(c.tensor(), 1));
  }
  lines << QStringLiteral("step %1").arg(model_->steps()[static_cast<std::size_t>(work.step)].step);
  return lines.join('\n');
}

void TimelineCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  paintOn(painter);
}

void TimelineCanvas::paintOn(QPainter& p) {
  const Tokens& t = Tokens::current();
  p.fillRect(rect(), t.panel);
  if (!model_ || model_->rows().empty()) return;
  p.setFont(text_.font());
  p.save();
  p.setClipRect(QRectF(0, area().top(), width(), area().height() + 4));
  for (int row = 0; row < static_cast<int>(model_->rows().size()); ++row) {
    if (rowTop(row) < height() && rowTop(row) + rowHeight() > area().top()) paintRow(p, t, row);
  }
  paintArrows(p, t);
  p.restore();
  paintRuler(p, t);
  paintCuts(p, t);
  paintRange(p, t);
}

void TimelineCanvas::paintRow(QPainter& p, const Tokens& t, int index) {
  const TimelineRow& row = model_->rows()[static_cast<std::size_t>(index)];
  const QRectF area = this->area();
  const QFontMetricsF metrics(text_.font());
  const double top = rowTop(index), high = rowHeight();
  const bool lastOfRank = index + 1 < static_cast<int>(model_->rows().size()) &&
                          model_->rows()[static_cast<std::size_t>(index) + 1].rank != row.rank;
  p.setPen(lastOfRank ? QPen(t.edge, 2) : QPen(t.grid));
  p.drawLine(QPointF(0, top + high - 0.5), QPointF(width(), top + high - 0.5));
  const double unit = Metrics::current().unit, baseline = top + high / 2 + metrics.ascent() / 2 - 1.5;
  p.setPen(t.text);
  using Kind = TimelineRow::Kind;
  p.drawText(QPointF(unit * 0.8, baseline), row.kind == Kind::kCalls         ? QStringLiteral("Calls")
                                            : row.kind == Kind::kWaits       ? QStringLiteral("Waits")
                                            : row.kind == Kind::kStream      ? QStringLiteral("Device")
                                            : row.kind == Kind::kOverhead    ? QStringLiteral("Overhead")
                                            : row.kind == Kind::kCollectives ? QStringLiteral("Collectives")
                                                                             : names::phase(row.phase));
  p.setPen(t.faint);
  const bool ofHost = row.kind == Kind::kCalls || row.kind == Kind::kWaits || row.kind == Kind::kOverhead;
  const int stream = row.kind == Kind::kStream ? row.thread : ofHost ? -1 : row.thread - 1;
  QString thread = stream < 0 ? QStringLiteral("main") : QStringLiteral("stream %1").arg(stream);
  if (model_->ranks() > 1) {
    thread =
        stream < 0 ? QStringLiteral("rank %1").arg(row.rank) : QStringLiteral("%1: stream %2").arg(row.rank).arg(stream);
    p.setPen(t.muted);
  }
  p.drawText(QPointF(area.left() - metrics.horizontalAdvance(thread) - 10, baseline), thread);

  p.save();
  p.setClipRect(QRectF(area.left(), top, area.width(), high), Qt::IntersectClip);
  const double perPixel = (viewEnd() - viewBegin()) / std::max(1.0, area.width());
  // The finest level whose entries are mostly wider than a pixel and a half.
  const double average = row.slices.empty() ? 1
                                            : (axis().toPlace(static_cast<double>(row.slices.back().end)) -
                                               axis().toPlace(static_cast<double>(row.slices.front().begin))) /
                                                  static_cast<double>(row.slices.size());
  const double first = axis().toClock(viewBegin(), true), last = axis().toClock(viewEnd(), false);
  int level = -1;
  for (double width = average; width < perPixel * 1.5 && level + 1 < static_cast<int>(row.levels.size()); width *= 4)
    ++level;
  std::vector<std::vector<QRectF>> batches(model_->categories().size());
  std::vector<std::pair<QRectF, const TimelineSlice*>> wide;
  std::vector<QRectF> together;  // of the selected group
  const double y = top + 3, h = high - 6;
  if (level < 0) {
    auto it = std::lower_bound(row.slices.begin(), row.slices.end(), first,
                               [](const TimelineSlice& s, double v) { return static_cast<double>(s.end) < v; });
    for (; it != row.slices.end() && static_cast<double>(it->begin) <= last; ++it) {
      const QRectF r = rectOf(index, *it) & QRectF(area.left(), y, area.width(), h);
      if (r.isEmpty()) continue;
      batches[it->category].push_back(r);
      if (r.width() > 30) wide.emplace_back(r, &*it);
      if (group_.contains(it->instruction)) together.push_back(r);
    }
  } else {
    const std::vector<SliceGroup>& groups = row.levels[static_cast<std::size_t>(level)];
    auto it = std::lower_bound(groups.begin(), groups.end(), first,
                               [](const SliceGroup& s, double v) { return static_cast<double>(s.end) < v; });
    for (; it != groups.end() && static_cast<double>(it->begin) <= last; ++it) {
      const double x0 = xOf(it->begin), x1 = xOf(it->end);
      const std::int64_t ran = it->end - it->begin - axis().cutWithin(it->begin, it->end);
      // Height by how busy it is, so that gaps are seen even where slices are merged.
      const double busy = ran > 0 ? static_cast<double>(it->busy) / static_cast<double>(ran) : 1;
      const double used = std::max(2.0, h * std::clamp(busy, 0.0, 1.0));
      batches[it->category].push_back(QRectF(x0, y + h - used, std::max(1.0, x1 - x0), used));
      for (int i = it->first; i < it->last && !group_.empty(); ++i) {
        if (!group_.contains(row.slices[static_cast<std::size_t>(i)].instruction)) continue;
        together.push_back(batches[it->category].back());
        break;
      }
    }
  }
  p.setPen(Qt::NoPen);
  for (std::size_t c = 0; c < batches.size(); ++c) {
    if (batches[c].empty()) continue;
    if (static_cast<int>(c) == model_->waitingCategory())
      p.setBrush(QBrush(t.warn, Qt::BDiagPattern));
    else
      p.setBrush(mixed(t.category(QString::fromStdString(model_->categories()[c])), t.panel, 0.62));
    p.drawRects(batches[c].data(), static_cast<int>(batches[c].size()));
  }
  for (const QRectF& r : together) p.fillRect(QRectF(r.x(), y + h - 2, std::max(1.5, r.width()), 3), t.accent);
  for (const auto& [r, slice] : wide) {
    const snapshot::Instruction* in = model_->ran(slice->step, slice->own);
    const QString name = slice->exchange >= 0 ? exchangeWords(*model_, *slice)
                         : slice->work >= 0   ? workName(model_->work()[static_cast<std::size_t>(slice->work)])
                         : in != nullptr      ? names::op(*in)
                                              : QString();
    p.setPen(t.text);
    p.drawText(QPointF(r.x() + 4, baseline), text_.legible(name, r.width() - 7));
  }
  if (index == hoveredRow_ && hoveredSlice_ >= 0 && hoveredSlice_ < static_cast<int>(row.slices.size())) {
    p.setPen(QPen(t.text, 1));
    p.setBrush(Qt::NoBrush);
    p.drawRect(rectOf(index, row.slices[static_cast<std::size_t>(hoveredSlice_)]));
  }
  p.restore();
}

void TimelineCanvas::paintArrows(QPainter& p, const Tokens& t) {
  int row = 0, slice = 0;
  if (selected_ < 0 || !model_->find(selected_, &row, &slice)) return;
  const TimelineSlice& from = model_->rows()[static_cast<std::size_t>(row)].slices[static_cast<std::size_t>(slice)];
  const QRectF a = rectOf(row, from);
  p.save();
  p.setClipRect(area(), Qt::IntersectClip);
  p.setRenderHint(QPainter::Antialiasing);
  for (const int other : related_) {
    int otherRow = 0, otherSlice = 0;
    if (!model_->find(other, &otherRow, &otherSlice)) continue;
    const TimelineSlice& to =
        model_->rows()[static_cast<std::size_t>(otherRow)].slices[static_cast<std::size_t>(otherSlice)];
    const QRectF b = rectOf(otherRow, to);
    const bool forward = from.begin <= to.begin;
    paintArrow(p, t, forward ? a : b, forward ? b : a);
    p.setPen(QPen(t.accent, 1.2));
    p.setBrush(Qt::NoBrush);
    p.drawRect(b.adjusted(-0.5, -0.5, 0.5, 0.5));
  }
  for (const int i : model_->workOf(selected_)) {
    const TimelineWork& work = model_->work()[static_cast<std::size_t>(i)];
    const auto sliceOf = [&](int of, int slot) {
      return rectOf(of, model_->rows()[static_cast<std::size_t>(of)].slices[static_cast<std::size_t>(slot)]);
    };
    const QRectF made = sliceOf(work.row, work.slice);
    if (work.callRow >= 0) paintArrow(p, t, sliceOf(work.callRow, work.callSlice), made);
    p.setPen(QPen(t.accent, 1.2));
    p.setBrush(Qt::NoBrush);
    p.drawRect(made.adjusted(-0.5, -0.5, 0.5, 0.5));
  }
  p.setPen(QPen(t.accent, 2));
  p.setBrush(Qt::NoBrush);
  p.drawRect(a.adjusted(-1, -1, 1, 1));
  p.restore();
}

void TimelineCanvas::paintArrow(QPainter& p, const Tokens& t, const QRectF& from, const QRectF& to) const {
  const QPointF begin(from.right(), from.center().y()), end(to.left(), to.center().y());
  const double k = std::clamp((end.x() - begin.x()) * 0.4, 14.0, 160.0);
  QPainterPath path(begin);
  path.cubicTo(begin + QPointF(k, 0), end - QPointF(k, 0), end);
  p.setPen(QPen(t.accent, 1.4));
  p.setBrush(Qt::NoBrush);
  p.drawPath(path);
  const QPointF head[3] = {end, end + QPointF(-6, -3), end + QPointF(-6, 3)};
  p.setPen(Qt::NoPen);
  p.setBrush(t.accent);
  p.drawConvexPolygon(head, 3);
}

void TimelineCanvas::paintRange(QPainter& p, const Tokens& t) {
  double begin = axis().toPlace(static_cast<double>(rangeBegin_)), end = axis().toPlace(static_cast<double>(rangeEnd_));
  std::int64_t cut = axis().cutWithin(rangeBegin_, rangeEnd_);
  if (pickEnd() > pickBegin()) {
    begin = pickBegin();
    end = pickEnd();
    cut = static_cast<std::int64_t>(axis().toClock(end, false) - axis().toClock(begin, true) - (end - begin));
  }
  if (end <= begin) return;
  const QRectF area = this->area();
  const double x0 = std::max(area.left(), toX(begin)), x1 = std::min(area.right(), toX(end));
  if (x1 <= x0) return;
  QColor shade = t.accent;
  shade.setAlphaF(0.1F);
  p.fillRect(QRectF(x0, area.top(), x1 - x0, area.height()), shade);
  p.setPen(QPen(t.accent, 1));
  p.drawLine(QPointF(x0, area.top() - 8), QPointF(x0, area.bottom()));
  p.drawLine(QPointF(x1, area.top() - 8), QPointF(x1, area.bottom()));
  const QString words = format::time(static_cast<std::int64_t>(end - begin)) +
                        (cut > 0 ? QStringLiteral(" + %1 cut out").arg(format::time(cut)) : QString());
  const QFontMetricsF metrics(text_.font());
  const double width = metrics.horizontalAdvance(words) + 12;
  if (x1 - x0 < width + 10) return;
  const QRectF label((x0 + x1 - width) / 2, area.bottom() - metrics.height() - 2, width, metrics.height() + 1);
  p.fillRect(label, t.panel);
  p.setPen(t.accent);
  p.drawText(label, Qt::AlignCenter, words);
}

}  // namespace stepscope

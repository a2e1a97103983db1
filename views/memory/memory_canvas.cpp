// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/memory/memory_canvas.h"

#include <QPainter>
#include <QPainterPath>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "views/common/format.h"
#include "views/common/names.h"
#include "views/drawing/axis_ticks.h"

namespace stepscope {
namespace {

constexpr double kHeadroom = 1.1;         // above the highest address: room for labels
constexpr double kPersistentShare = 0.3;  // of the height, at most: the arena is what the plan decides

QString mebibytes(std::int64_t bytes) { return bytes == 0 ? QStringLiteral("0") : format::bytes(bytes); }

}  // namespace

MemoryCanvas::MemoryCanvas(QWidget* parent) : AxisCanvas(parent), text_(smallFont()) { setAccessibleName(tr("Memory map")); }

void MemoryCanvas::setModel(std::shared_ptr<const MemoryModel> model) {
  model_ = std::move(model);
  hovered_ = -1;
  if (model_) {
    const double below = static_cast<double>(model_->persistent()), arena = static_cast<double>(model_->top()) - below;
    const double share = kPersistentShare / (1 - kPersistentShare) * arena * kHeadroom;
    squeeze_ = arena > 0 && below > share ? share / below : 1;
    setLimits(0, std::max(1, model_->instructions()));
    fitAll();
  }
  update();
}

void MemoryCanvas::fitAll() {
  low_ = 0;
  high_ = unitsTop();
  fit();
}

double MemoryCanvas::toUnits(double bytes) const {
  const double below = static_cast<double>(model_->persistent());
  return bytes <= below ? bytes * squeeze_ : below * squeeze_ + bytes - below;
}

double MemoryCanvas::toBytes(double units) const {
  const double below = static_cast<double>(model_->persistent());
  return units <= below * squeeze_ ? units / squeeze_ : below + units - below * squeeze_;
}

double MemoryCanvas::unitsTop() const {
  return model_ ? std::max(1.0, toUnits(static_cast<double>(model_->top())) * kHeadroom) : 1;
}

void MemoryCanvas::setCurrent(int instruction) {
  if (current_ == instruction) return;
  current_ = instruction;
  update();
}

void MemoryCanvas::setSelected(int buffer, int instruction) {
  selected_ = buffer;
  selectedInstruction_ = instruction;
  update();
}

void MemoryCanvas::setMeasured(std::int64_t bytes) {
  measured_ = bytes;
  update();
}

void MemoryCanvas::showBuffer(int buffer) {
  const int box = model_ ? model_->boxOf(buffer) : -1;
  if (box < 0) return;
  const MemoryBox& b = model_->boxes()[static_cast<std::size_t>(box)];
  const double span = std::max(8.0, 3.0 * (b.end - b.first)), middle = (b.first + b.end) / 2.0;
  showRange(middle - span / 2, middle + span / 2);
}

QRectF MemoryCanvas::plot() const {
  const double unit = Metrics::current().unit;
  return {4.6 * unit, 1.7 * unit, std::max(20.0, width() - 5.6 * unit),
          std::max(20.0, height() - (height() < 11 * unit ? 3.4 : 4.9) * unit)};
}

double MemoryCanvas::toY(double bytes) const {
  const QRectF area = this->area();
  return area.bottom() - (toUnits(bytes) - low_) / (high_ - low_) * area.height();
}

double MemoryCanvas::toUnitsAt(double y) const {
  const QRectF area = this->area();
  return low_ + (area.bottom() - y) / area.height() * (high_ - low_);
}

void MemoryCanvas::clampAddresses() {
  const double most = unitsTop();
  const double span = std::clamp(high_ - low_, std::min(most, 4096.0), most);
  low_ = std::clamp(low_, 0.0, most - span);
  high_ = low_ + span;
}

QRectF MemoryCanvas::rectOf(const MemoryBox& b) const {
  const double x0 = toX(b.first), x1 = toX(b.end), y0 = toY(static_cast<double>(b.high)),
               y1 = toY(static_cast<double>(b.low));
  const double gap = x1 - x0 > 4 ? 0.8 : 0, gapY = y1 - y0 > 4 ? 0.8 : 0;
  return {x0, y0 + gapY, std::max(1.0, x1 - x0 - gap), std::max(1.0, y1 - y0 - gapY)};
}

int MemoryCanvas::instructionAt(QPointF pixel) const {
  if (!model_ || pixel.x() < area().left() || pixel.x() > area().right()) return -1;
  const int i = static_cast<int>(std::floor(toValue(pixel.x())));
  return i < 0 || i >= model_->instructions() ? -1 : i;
}

int MemoryCanvas::bufferAt(QPointF pixel) const {
  if (!model_ || !area().contains(pixel)) return -1;
  int hit = -1;
  for (const MemoryBox& b : model_->boxes()) {
    if (rectOf(b).adjusted(-1, -1, 1, 1).contains(pixel)) hit = b.buffer;  // the newest of those that share memory
  }
  return hit;
}

void MemoryCanvas::hover(QPointF pixel, bool inside) {
  const int hit = inside ? bufferAt(pixel) : -1;
  if (hit == hovered_) return;
  hovered_ = hit;
  setCursor(hit >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
  update();
}

bool MemoryCanvas::scroll(double pixels) {
  if (!model_ || high_ - low_ >= unitsTop() * 0.999) return false;
  const double by = -pixels / area().height() * (high_ - low_);
  low_ += by;
  high_ += by;
  clampAddresses();
  update();
  return true;
}

void MemoryCanvas::wheelEvent(QWheelEvent* event) {
  if (!model_ || !(event->modifiers() & Qt::ControlModifier) || !(event->modifiers() & Qt::ShiftModifier)) {
    AxisCanvas::wheelEvent(event);
    return;
  }
  const double turn = event->angleDelta().y() != 0 ? event->angleDelta().y() : event->angleDelta().x();
  const double at = toUnitsAt(event->position().y()), factor = std::pow(0.9985, turn);
  low_ = at - (at - low_) * factor;
  high_ = at + (high_ - at) * factor;
  clampAddresses();
  update();
  event->accept();
}

QString MemoryCanvas::instructionName(int index) const {
  const snapshot::Instruction* in = model_->plan().instruction(index);
  return in == nullptr ? QString() : format::count(index) + ' ' + format::visible(in->op());
}

QString MemoryCanvas::tipAt(QPointF pixel) const {
  const int index = bufferAt(pixel);
  if (index < 0) {
    const int at = instructionAt(pixel);
    if (at < 0) return {};
    return tr("%1\n%2 alive").arg(instructionName(at), format::bytes(model_->live()[static_cast<std::size_t>(at)]));
  }
  const snapshot::Buffer& b = *model_->plan().buffer(index);
  QStringList lines;
  lines << format::visible(b.name().empty() ? "workspace" : b.name());
  lines << tr("%1 · %2 (%3)")
               .arg(names::bufferClass(b.buffer_class()), format::bytes(b.bytes()), format::bytesExact(b.bytes()));
  if (b.in_arena()) {
    lines << tr("alive from %1 to %2 · address %3")
                 .arg(instructionName(b.first()), instructionName(b.last()), format::count(b.offset()));
    lines << format::visible(b.decision());
    for (const std::string& refusal : b.refusals()) lines << tr("not in place: %1").arg(format::visible(refusal));
  } else {
    lines << tr("kept over steps");
  }
  return lines.join('\n');
}

void MemoryCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  paintOn(painter);
}

void MemoryCanvas::paintOn(QPainter& p) {
  const Tokens& t = Tokens::current();
  p.fillRect(rect(), t.panel);
  if (!model_) return;
  p.setFont(text_.font());
  paintAxes(p, t);
  p.save();
  p.setClipRect(area().adjusted(-1, -1, 1, 1));
  paintBoxes(p, t);
  paintBands(p, t);
  paintSelected(p, t);
  p.restore();
  paintMarks(p, t);
  paintLegend(p, t);
}

void MemoryCanvas::paintAxes(QPainter& p, const Tokens& t) {
  const QRectF area = this->area();
  const QFontMetricsF metrics(text_.font());
  const double border = static_cast<double>(model_->persistent()), from = toBytes(low_), to = toBytes(high_);
  const auto ticksOf = [&](double a, double b) {
    return b <= a ? std::vector<double>() : binaryTicks(a, b, std::max(1, static_cast<int>((toY(a) - toY(b)) / 34)));
  };
  std::vector<double> ticks = squeeze_ == 1 ? ticksOf(from, to) : ticksOf(std::max(from, border), to);
  if (squeeze_ != 1 && from < border) {
    // Below the break the scale is another one, so it gets its own numbers and the break its sign.
    std::erase_if(ticks, [&](double v) { return std::abs(toY(v) - toY(border)) < 10; });
    ticks.push_back(0);
    ticks.push_back(border);
    p.setPen(t.muted);
    const double y = toY(border);
    for (const double dy : {-3.0, 1.0})
      p.drawLine(QPointF(area.left() - 4, y + dy + 2.5), QPointF(area.left() + 4, y + dy - 0.5));
  }
  for (const double tick : ticks) {
    if (tick < from || tick > to) continue;
    const double y = toY(tick);
    p.setPen(t.grid);
    p.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    const QString words = mebibytes(static_cast<std::int64_t>(tick));
    p.setPen(t.faint);
    p.drawText(QPointF(area.left() - 6 - metrics.horizontalAdvance(words), y + metrics.ascent() / 2 - 1), words);
  }
  const snapshot::Plan& plan = model_->plan().plan();
  const int count = model_->instructions();
  // Phase borders first: their names matter more than round numbers.
  std::vector<std::pair<double, QString>> marks;
  if (plan.first_backward() > 0 && plan.first_backward() < count)
    marks.emplace_back(plan.first_backward(), tr("%1 backward").arg(format::count(plan.first_backward())));
  if (plan.first_optimizer() > 0 && plan.first_optimizer() < count)
    marks.emplace_back(plan.first_optimizer(), tr("%1 optimizer").arg(format::count(plan.first_optimizer())));
  for (const auto& [at, words] : marks) {
    if (at < viewBegin() || at > viewEnd()) continue;
    QPen line(t.border, 1, Qt::DashLine);
    p.setPen(line);
    p.drawLine(QPointF(toX(at), area.top()), QPointF(toX(at), area.bottom() + 3));
  }
  const std::size_t borders = marks.size();
  marks.emplace_back(limitBegin(), QStringLiteral("0"));
  marks.emplace_back(limitEnd(), format::count(count));
  for (const double tick : decimalTicks(viewBegin(), viewEnd(), std::max(2, static_cast<int>(area.width() / 90))))
    marks.emplace_back(tick, format::count(std::llround(tick)));
  std::vector<std::pair<double, double>> taken;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const auto& [at, words] = marks[i];
    if (at < viewBegin() - 1e-9 || at > viewEnd() + 1e-9) continue;
    const double width = metrics.horizontalAdvance(words);
    const double x = std::clamp(toX(at) - width / 2, area.left() - 4, this->width() - width - 4);
    if (std::any_of(taken.begin(), taken.end(),
                    [&](const auto& o) { return x < o.second + 10 && x + width > o.first - 10; }))
      continue;
    taken.emplace_back(x, x + width);
    p.setPen(i < borders ? t.muted : t.faint);
    p.drawText(QPointF(x, area.bottom() + 5 + metrics.ascent()), words);
  }
}

void MemoryCanvas::paintBoxes(QPainter& p, const Tokens& t) {
  std::map<int, std::vector<QRectF>> batches;
  std::vector<std::pair<QRectF, int>> wide;
  const QRectF area = this->area();
  for (const MemoryBox& b : model_->boxes()) {
    if (b.low < model_->persistent()) continue;  // a band of its class
    if (b.end < viewBegin() || b.first > viewEnd() || toUnits(static_cast<double>(b.high)) < low_ ||
        toUnits(static_cast<double>(b.low)) > high_)
      continue;
    const QRectF r = rectOf(b) & area;
    if (r.isEmpty()) continue;
    batches[b.bufferClass].push_back(r);
    if (r.width() > 70 && r.height() > 13) wide.emplace_back(r, b.buffer);
  }
  p.setPen(Qt::NoPen);
  for (const auto& [bufferClass, rects] : batches) {
    p.setBrush(mixed(t.bufferClass(bufferClass), t.panel, 0.55));
    p.drawRects(rects.data(), static_cast<int>(rects.size()));
  }
  if (hovered_ >= 0 && model_->boxOf(hovered_) >= 0) {
    const MemoryBox& b = model_->boxes()[static_cast<std::size_t>(model_->boxOf(hovered_))];
    p.setBrush(mixed(t.bufferClass(b.bufferClass), t.panel, 0.8));
    p.drawRect(rectOf(b));
  }
  const QFontMetricsF metrics(text_.font());
  for (const auto& [r, buffer] : wide) {
    const snapshot::Buffer& b = *model_->plan().buffer(buffer);
    if (r.height() < metrics.height() + 1) continue;
    p.setPen(t.text);
    const QString name =
        format::visible(b.name().empty() ? "workspace" : b.name()) + QStringLiteral("  ") + format::bytes(b.bytes());
    p.drawText(QPointF(r.x() + 5, r.center().y() + metrics.ascent() / 2 - 1.5), text_.elided(name, r.width() - 10));
  }
  // What is alive in all: above it in the arena are holes.
  QPainterPath line;
  const int from = std::max(0, static_cast<int>(viewBegin())),
            to = std::min(model_->instructions(), static_cast<int>(std::ceil(viewEnd())));
  const int step = std::max(1, (to - from) / std::max(1, static_cast<int>(area.width())));
  for (int i = from; i < to; i += step) {
    std::int64_t most = 0;
    for (int k = i; k < std::min(to, i + step); ++k) most = std::max(most, model_->live()[static_cast<std::size_t>(k)]);
    const double y = toY(static_cast<double>(most));
    if (i == from) line.moveTo(toX(i), y);
    line.lineTo(toX(i), y);
    line.lineTo(toX(std::min(to, i + step)), y);
  }
  p.setPen(QPen(t.muted, 1));
  p.setBrush(Qt::NoBrush);
  p.drawPath(line);
}

void MemoryCanvas::paintBands(QPainter& p, const Tokens& t) {
  const QRectF area = this->area();
  const QFontMetricsF metrics(text_.font());
  for (const MemoryBand& band : model_->bands()) {
    const QRectF r = QRectF(area.left(), toY(static_cast<double>(band.high)), area.width(),
                            toY(static_cast<double>(band.low)) - toY(static_cast<double>(band.high)));
    if (r.height() < 0.3) continue;
    p.fillRect(r.adjusted(0, r.height() > 3 ? 0.8 : 0, 0, 0), mixed(t.bufferClass(band.bufferClass), t.panel, 0.3));
    if (r.height() < metrics.height()) continue;
    p.setPen(t.text);
    QString name = names::bufferClass(static_cast<snapshot::BufferClass>(band.bufferClass));
    if (band.buffers > 1 && name == u"parameter") name = tr("parameters");
    p.drawText(QPointF(r.x() + 6, r.center().y() + metrics.ascent() / 2 - 1.5),
               text_.elided(name + ' ' + format::bytes(band.high - band.low), r.width() - 12));
  }
}

void MemoryCanvas::paintSelected(QPainter& p, const Tokens& t) {
  // A view is shown where the memory is that it looks at.
  int box = model_->boxOf(selected_);
  if (box < 0 && model_->plan().buffer(selected_) != nullptr) box = model_->boxOf(model_->plan().root(selected_));
  if (box < 0) return;
  const MemoryBox& b = model_->boxes()[static_cast<std::size_t>(box)];
  const QRectF r = rectOf(b);
  p.setRenderHint(QPainter::Antialiasing);
  p.fillRect(r, t.accent);
  p.setPen(QPen(t.accent, 2));
  p.setBrush(Qt::NoBrush);
  p.drawRect(r.adjusted(-1, -1, 1, 1));
  if (b.end - b.first >= model_->instructions()) return;
  // Writers point up into the box, readers down out of it.
  for (const int user : model_->plan().users(selected_)) {
    const snapshot::Instruction* in = model_->plan().instruction(user);
    if (in == nullptr || user < viewBegin() - 1 || user > viewEnd()) continue;
    bool writes = false;
    for (const auto& out : in->outputs()) writes |= out.buffer() == selected_;
    const double x = (toX(user) + toX(user + 1)) / 2, y = writes ? r.bottom() + 9 : r.bottom() + 3;
    const double tip = writes ? -6 : 6;
    const QPointF corners[3] = {{x - 4, y}, {x + 4, y}, {x, y + tip}};
    p.setPen(QPen(t.panel, 0.8));
    p.setBrush(writes ? t.accent : mixed(t.accent, t.panel, 0.75));
    p.drawConvexPolygon(corners, 3);
  }
  p.setRenderHint(QPainter::Antialiasing, false);
}

void MemoryCanvas::paintMarks(QPainter& p, const Tokens& t) {
  const QRectF area = this->area();
  const QFontMetricsF metrics(text_.font());
  const snapshot::Plan& plan = model_->plan().plan();
  const auto inView = [&](double x) { return x >= viewBegin() && x <= viewEnd(); };
  p.setRenderHint(QPainter::Antialiasing);
  // The least any placement could do, and the address that this one reaches.
  const auto level = [&](std::int64_t bytes, const QString& words, Qt::PenStyle style, bool below) {
    const double y = toY(static_cast<double>(bytes));
    if (y < area.top() || y > area.bottom()) return;
    p.setPen(QPen(t.edge, 1, style));
    p.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    // Where the labels of cursor and selection stand there is no room for its words; the panel's header says them.
    if (y < area.top() + 2 * metrics.height()) return;
    p.setPen(t.muted);
    const QString label = words + ' ' + format::bytes(bytes);
    const double width = metrics.horizontalAdvance(label);
    const QRectF back(area.right() - width - 8, below ? y + 1 : y - metrics.height() - 1, width + 8, metrics.height());
    QColor panel = t.panel;
    panel.setAlphaF(0.85F);
    p.fillRect(back, panel);
    p.drawText(back, Qt::AlignCenter, label);
  };
  const std::int64_t planned = model_->persistent() + plan.arena_bytes(),
                     bound = model_->persistent() + plan.lower_bound_bytes();
  const bool close = std::abs(toY(static_cast<double>(planned)) - toY(static_cast<double>(bound))) < metrics.height() + 4;
  level(planned,
        close && bound < planned ? tr("planned %1 ·").arg(format::bytes(planned)) + ' ' + tr("lower bound") : tr("planned"),
        Qt::SolidLine, false);
  if (!close) level(bound, tr("lower bound"), Qt::DashLine, true);
  if (measured_ > 0) {
    const double y = toY(static_cast<double>(measured_));
    const QPointF corners[3] = {{area.right() + 1, y}, {area.right() + 7, y - 4}, {area.right() + 7, y + 4}};
    p.setPen(Qt::NoPen);
    p.setBrush(t.ok);
    p.drawConvexPolygon(corners, 3);
  }

  // Labels over the plot share two lines; the cursor's comes first.
  std::vector<std::pair<double, double>> taken[2];
  const auto label = [&](double x, const QString& words, const QColor& colour, bool left) {
    const double width = metrics.horizontalAdvance(words);
    double at = left ? x - width - 6 : x + 6;
    if (at < area.left()) at = x + 6;
    if (at + width > this->width() - 2) at = std::max(area.left(), x - width - 6);
    for (int line = 0; line < 2; ++line) {
      if (std::any_of(taken[line].begin(), taken[line].end(),
                      [&](const auto& o) { return at < o.second + 8 && at + width > o.first - 8; }))
        continue;
      taken[line].emplace_back(at, at + width);
      p.setPen(colour);
      p.drawText(QPointF(at, metrics.ascent() + 2 + line * metrics.height()), words);
      return;
    }
  };
  if (current_ >= 0 && inView(current_)) {
    const double x = toX(current_);
    p.setPen(QPen(t.warn, 1.5));
    p.drawLine(QPointF(x, metrics.height() * 0.4), QPointF(x, area.bottom() + 3));
    label(x, instructionName(current_), t.warn, true);
  }
  if (selected_ >= 0 && model_->plan().buffer(selected_) != nullptr) {
    const snapshot::Buffer& b = *model_->plan().buffer(selected_);
    const double x = toX(std::clamp<double>(b.first(), viewBegin(), viewEnd()));
    QString words =
        tr("selected: %1, %2")
            .arg(format::elided(format::visible(b.name().empty() ? "workspace" : b.name()), QFontMetrics(text_.font()), 220),
                 format::bytes(b.bytes()));
    if (!b.decision().empty())
      words += QStringLiteral(", ") + format::elided(format::visible(b.decision()), QFontMetrics(text_.font()), 240);
    label(x, words, t.accent, false);
  } else if (selectedInstruction_ >= 0 && inView(selectedInstruction_)) {
    const double x = toX(selectedInstruction_ + 0.5);
    p.setPen(QPen(t.accent, 1));
    p.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom() + 3));
    label(x, instructionName(selectedInstruction_), t.accent, false);
  }
  const int peak = plan.peak_instruction();
  if (peak >= 0 && peak < model_->instructions() && inView(peak)) {
    const double x = toX(peak + 0.5), y = toY(static_cast<double>(model_->live()[static_cast<std::size_t>(peak)]));
    p.setPen(QPen(t.error, 1, Qt::DotLine));
    p.drawLine(QPointF(x, y), QPointF(x, area.bottom()));
    const QPointF corners[3] = {{x, y - 1}, {x - 4, y - 8}, {x + 4, y - 8}};
    p.setPen(Qt::NoPen);
    p.setBrush(t.error);
    p.drawConvexPolygon(corners, 3);
    QStringList owners;
    std::int64_t total = 0, named = 0;
    for (const auto& owner : plan.peak_owners()) total += std::max<std::int64_t>(0, owner.bytes());
    std::vector<snapshot::MemoryOwner> sorted(plan.peak_owners().begin(), plan.peak_owners().end());
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.bytes() > b.bytes(); });
    for (const auto& owner : sorted) {
      if (owners.size() == 3) break;
      owners << format::visible(owner.owner()) + ' ' + format::bytes(owner.bytes());
      named += owner.bytes();
    }
    if (named < total) owners << tr("other %1").arg(format::bytes(total - named));
    label(x,
          tr("peak at %1").arg(format::count(peak)) +
              (owners.isEmpty() ? QString() : QStringLiteral(": ") + owners.join(QStringLiteral(" · "))),
          t.error, false);
  }
  p.setRenderHint(QPainter::Antialiasing, false);
}

void MemoryCanvas::paintLegend(QPainter& p, const Tokens& t) {
  std::set<int> present;
  for (const MemoryBox& b : model_->boxes()) {
    if (b.low >= model_->persistent()) present.insert(b.bufferClass);
  }
  const QFontMetricsF metrics(text_.font());
  const double y = height() - metrics.height() * 0.5 - 3;
  double x = area().left();
  // Below the axis where the window is high enough for one more line.
  if (height() < 11 * Metrics::current().unit) return;
  for (const int bufferClass : present) {
    const QString name = names::bufferClass(static_cast<snapshot::BufferClass>(bufferClass));
    const double width = metrics.horizontalAdvance(name) + 26;
    if (x + width > area().right()) break;
    p.fillRect(QRectF(x, y - 4, 8, 8), mixed(t.bufferClass(bufferClass), t.panel, 0.75));
    p.setPen(t.muted);
    p.drawText(QPointF(x + 12, y + metrics.ascent() / 2 - 1), name);
    x += width;
  }
}

}  // namespace stepscope

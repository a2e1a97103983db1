// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/memory/memory_canvas.h"

#include <QPainter>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "views/common/format.h"
#include "views/common/names.h"
#include "views/memory/memory_painter.h"

namespace stepscope {

MemoryCanvas::MemoryCanvas(QWidget* parent) : AxisCanvas(parent), text_(smallFont()) {
  setAccessibleName(QStringLiteral("Memory map"));
}

void MemoryCanvas::setModel(std::shared_ptr<const MemoryModel> model) {
  model_ = std::move(model);
  state_.hovered = -1;
  if (model_) {
    squeeze_ = MemoryScale::squeezeFor(*model_);
    setLimits(0, std::max(1, model_->instructions()));
    fitAll();
  }
  update();
}

double MemoryCanvas::narrowest() const {
  constexpr double kFew = 8;
  return model_ ? std::clamp<double>(model_->instructions(), 1, kFew) : kFew;
}

void MemoryCanvas::fitAll() {
  low_ = 0;
  high_ = unitsTop();
  fit();
}

void MemoryCanvas::setCurrent(int instruction) {
  if (state_.current == instruction) return;
  state_.current = instruction;
  update();
}

void MemoryCanvas::setSelected(int buffer, int instruction) {
  state_.selected = buffer;
  state_.selectedInstruction = instruction;
  update();
}

void MemoryCanvas::setMeasured(std::int64_t bytes) {
  state_.measured = bytes;
  update();
}

void MemoryCanvas::showBuffer(int buffer) {
  const int box = model_ ? model_->boxOf(buffer) : -1;
  if (box < 0) return;
  const MemoryBox& b = model_->boxes()[static_cast<std::size_t>(box)];
  const double span = std::max(8.0, 3.0 * (b.end - b.first)), middle = (b.first + b.end) / 2.0;
  showRange(middle - span / 2, middle + span / 2);
}

MemoryScale MemoryCanvas::scale() const {
  MemoryScale s;
  s.area = area();
  s.viewBegin = viewBegin();
  s.viewEnd = viewEnd();
  s.low = low_;
  s.high = high_;
  s.persistent = model_ ? static_cast<double>(model_->persistent()) : 0;
  s.squeeze = squeeze_;
  return s;
}

double MemoryCanvas::unitsTop() const { return model_ ? scale().unitsTop(*model_) : 1; }

QRectF MemoryCanvas::plot() const {
  const double unit = Metrics::current().unit;
  // Two lines of labels above and the legend below, where there is height for them.
  const bool low = height() < 11 * unit;
  return {5.2 * unit, (low ? 1.7 : 2.4) * unit, std::max(20.0, width() - 6.2 * unit),
          std::max(20.0, height() - (low ? 3.4 : 5.6) * unit)};
}

void MemoryCanvas::clampAddresses() {
  const double most = unitsTop();
  const double span = std::clamp(high_ - low_, std::min(most, 4096.0), most);
  low_ = std::clamp(low_, 0.0, most - span);
  high_ = low_ + span;
}

int MemoryCanvas::instructionAt(QPointF pixel) const {
  if (!model_ || pixel.x() < area().left() || pixel.x() > area().right()) return -1;
  const int i = static_cast<int>(std::floor(toValue(pixel.x())));
  return i < 0 || i >= model_->instructions() ? -1 : i;
}

int MemoryCanvas::bufferAt(QPointF pixel) const {
  if (!model_ || !area().contains(pixel)) return -1;
  int hit = -1;
  const MemoryScale scale = this->scale();
  for (const MemoryBox& b : model_->boxes()) {
    if (scale.rectOf(b).adjusted(-1, -1, 1, 1).contains(pixel)) hit = b.buffer;  // the newest of those that share memory
  }
  return hit;
}

void MemoryCanvas::hover(QPointF pixel, bool inside) {
  const int hit = inside ? bufferAt(pixel) : -1;
  if (hit == state_.hovered) return;
  state_.hovered = hit;
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
  const double at = scale().unitsAt(event->position().y()), factor = std::pow(0.9985, turn);
  low_ = at - (at - low_) * factor;
  high_ = at + (high_ - at) * factor;
  clampAddresses();
  update();
  event->accept();
}

QString MemoryCanvas::tipAt(QPointF pixel) const {
  const int index = bufferAt(pixel);
  if (index < 0) {
    const int at = instructionAt(pixel);
    if (at < 0) return {};
    return QStringLiteral("%1\n%2 alive")
        .arg(MemoryPainter::instructionName(*model_, at), format::bytes(model_->live()[static_cast<std::size_t>(at)]));
  }
  const snapshot::Buffer& b = *model_->plan().buffer(index);
  QStringList lines;
  lines << format::visible(b.name().empty() ? "workspace" : b.name());
  lines << QStringLiteral("%1 · %2 (%3)")
               .arg(names::bufferClass(b.buffer_class()), format::bytes(b.bytes()), format::bytesExact(b.bytes()));
  if (b.in_arena()) {
    lines << QStringLiteral("alive from %1 to %2 · address %3")
                 .arg(MemoryPainter::instructionName(*model_, b.first()), MemoryPainter::instructionName(*model_, b.last()),
                      format::count(b.offset()));
    lines << format::visible(b.decision());
    for (const std::string& refusal : b.refusals())
      lines << QStringLiteral("not in place: %1").arg(format::visible(refusal));
  } else {
    lines << QStringLiteral("kept over steps");
  }
  return lines.join('\n');
}

void MemoryCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  paintOn(painter);
}

void MemoryCanvas::paintOn(QPainter& p) {
  p.fillRect(rect(), Tokens::current().panel);
  if (!model_) return;
  MemoryPainter(*model_, scale(), state_, text_, size()).paint(p);
}

}  // namespace stepscope

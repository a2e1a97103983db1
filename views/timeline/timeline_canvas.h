// SPDX-License-Identifier: GPL-3.0-or-later
// Paints a timeline: steps along the top, one row per thread and phase, arrows from a forward slice to its gradients and
// from the calls of the selected instruction to what they put on a stream. What is cut out of the axis is a dashed line with
// its length. Knows no store; TimelineView connects it. Dragging in the rows picks a range of time, in the ruler it moves.
// The axis of the base class has places of TimelineAxis; everything here that is called a time is one of the clock.
#pragma once

#include <memory>
#include <unordered_set>
#include <vector>

#include "views/common/tokens.h"
#include "views/drawing/axis_canvas.h"
#include "views/drawing/text_cache.h"
#include "views/timeline/timeline_model.h"

namespace stepscope {

// A tick of the ruler, of ticks that are `apart` nanoseconds apart up to `last`: neighbours differ in their text.
QString tickText(double ns, double apart, double last);

class TimelineCanvas : public AxisCanvas {
  Q_OBJECT

 public:
  explicit TimelineCanvas(QWidget* parent = nullptr);

  void setModel(std::shared_ptr<const TimelineModel> model);
  const std::shared_ptr<const TimelineModel>& model() const { return model_; }
  // The selected instruction and those that belong to it (its gradients, or its forward node); -1 for none.
  // `group`: instructions that are selected together with it.
  void setSelected(int instruction, std::vector<int> related, std::unordered_set<int> group = {});
  const std::unordered_set<int>& group() const { return group_; }
  void setRange(std::int64_t begin, std::int64_t end);  // equal: none
  void showInstruction(int instruction);                // zooms to its slice
  void showTime(std::int64_t begin, std::int64_t end);

  bool sliceAt(QPointF pixel, int* row, int* slice) const;
  int stepAt(QPointF pixel) const;                              // in the ruler; -1
  std::vector<const TimelineCut*> cutsAt(QPointF pixel) const;  // whose mark is there: several where they are close together
  void paintOn(QPainter& painter);
  QSize sizeHint() const override { return {640, 200}; }

 signals:
  void timePicked(qint64 begin, qint64 end);  // begin < end

 protected:
  QRectF plot() const override;
  bool dragPicks(QPointF pixel) const override;
  void hover(QPointF pixel, bool inside) override;
  bool scroll(double pixels) override;
  double narrowest() const override { return 200; }
  QString tipAt(QPointF pixel) const override;
  void paintEvent(QPaintEvent*) override;
  void resizeEvent(QResizeEvent*) override { scroll(0); }

 private:
  struct CutMark {               // of cuts that are drawn as one
    double first = 0, last = 0;  // pixels
    std::vector<const TimelineCut*> cuts;
    QString words;  // empty where there is no room
    QRectF label;
  };
  std::vector<CutMark> cutMarks() const;  // those in sight
  double rowHeight() const;
  double rowTop(int row) const;
  void paintRow(QPainter& p, const Tokens& t, int row);
  void paintRuler(QPainter& p, const Tokens& t);
  void paintStep(QPainter& p, const Tokens& t, const TimelineStep& step, const QColor& fill);
  void paintTicks(QPainter& p, const Tokens& t);
  void paintCuts(QPainter& p, const Tokens& t);
  void paintArrows(QPainter& p, const Tokens& t);
  void paintRange(QPainter& p, const Tokens& t);
  void paintArrow(QPainter& p, const Tokens& t, const QRectF& from, const QRectF& to) const;
  QString workTip(const TimelineWork& work) const;
  QString cutTip(const std::vector<const TimelineCut*>& cuts) const;
  const TimelineAxis& axis() const { return model_->axis(); }
  double xOf(std::int64_t time) const { return toX(axis().toPlace(static_cast<double>(time))); }
  std::int64_t timeAt(double x) const;
  QRectF rectOf(int row, const TimelineSlice& slice) const;
  QString nameOf(int step, int own) const;

  std::shared_ptr<const TimelineModel> model_;
  std::vector<int> related_;
  std::unordered_set<int> group_;
  int selected_ = -1, hoveredRow_ = -1, hoveredSlice_ = -1;
  std::int64_t rangeBegin_ = 0, rangeEnd_ = 0;
  double offset_ = 0;
  TextCache text_;
};

}  // namespace stepscope

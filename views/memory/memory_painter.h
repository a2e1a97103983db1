// SPDX-License-Identifier: GPL-3.0-or-later
// Paints a memory map at a scale: axes, boxes by class, persistent bands, the selected buffer with its readers and writers,
// the cursor, the peak and its owners, the legend. Made for one picture.
#pragma once

#include <QPainter>

#include "views/common/tokens.h"
#include "views/drawing/text_cache.h"
#include "views/memory/memory_scale.h"

namespace stepscope {

struct MemoryPaintState {
  int current = -1, selected = -1, selectedInstruction = -1, hovered = -1;  // instruction, buffer, instruction, buffer
  std::int64_t measured = 0;                                                // bytes of the last step; 0 unknown
};

class MemoryPainter {
 public:
  MemoryPainter(const MemoryModel& model, const MemoryScale& scale, const MemoryPaintState& state, TextCache& text,
                QSize size);

  void paint(QPainter& painter);
  // "390 LayerNormGrad".
  static QString instructionName(const MemoryModel& model, int index);

 private:
  void paintAxes(QPainter& p, const Tokens& t);
  void paintInstructions(QPainter& p, const Tokens& t);
  void paintBoxes(QPainter& p, const Tokens& t);
  void paintLive(QPainter& p, const Tokens& t);
  void paintWords(QPainter& p, const Tokens& t);
  void paintBands(QPainter& p, const Tokens& t);
  void paintSelected(QPainter& p, const Tokens& t);
  void paintLevels(QPainter& p, const Tokens& t);
  void paintMarks(QPainter& p, const Tokens& t);
  void paintLegend(QPainter& p, const Tokens& t);
  QString peakText() const;

  const MemoryModel& model_;
  const MemoryScale& scale_;
  const MemoryPaintState& state_;
  TextCache& text_;
  QSize size_;
  std::vector<std::pair<QRectF, int>> wide_;  // places of boxes that may have words, with their buffers
};

}  // namespace stepscope

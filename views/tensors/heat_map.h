// SPDX-License-Identifier: GPL-3.0-or-later
// A plane of numbers as colours: two-sided ramp around zero, NaN and infinities in the one loud colour.
#pragma once

#include <QImage>
#include <QWidget>

#include "views/tensors/tensor_table.h"

namespace stepscope {

class HeatMap : public QWidget {
  Q_OBJECT

 public:
  explicit HeatMap(QWidget* parent = nullptr);
  // Reads the table's plane. Where it is larger than the widget each cell shows its element of largest magnitude.
  void show(const TensorTable& table);
  void setRange(double low, double high);  // colours are clamped to it

 signals:
  void hovered(const QString& text);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void draw();
  QRect area() const;

  const TensorTable* table_ = nullptr;
  QImage image_;
  double low_ = 0, high_ = 0;
};

}  // namespace stepscope

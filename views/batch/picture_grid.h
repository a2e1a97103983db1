// SPDX-License-Identifier: GPL-3.0-or-later
// Images of a batch as pictures: an input [samples, 1 or 3 channels, height, width], with the label of each where there is
// one.
#pragma once

#include <QImage>
#include <QWidget>
#include <vector>

#include "views/common/tensor_values.h"

namespace stepscope {

// True for extents that can be shown as pictures.
bool isPictures(const std::vector<std::int64_t>& dims);

// One picture per sample that is whole in `pixels`, at most `most`. The range of all numbers that are there, smallest to
// largest, becomes black to white (one channel) or none to full red, green and blue; what is not finite has the one loud
// colour.
std::vector<QImage> makePictures(const TensorValues& pixels, std::size_t most);

class PictureGrid : public QWidget {
  Q_OBJECT

 public:
  explicit PictureGrid(QWidget* parent = nullptr);
  // `labels` has a number per sample, or nothing. The sample `worst` is framed; -1 none.
  void set(const TensorValues& pixels, TensorValues labels, int worst);
  int pictures() const { return static_cast<int>(pictures_.size()); }
  int heightForWidth(int width) const override;
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QSize cell() const;
  int columns(int width) const;
  QString caption(int sample) const;

  std::vector<QImage> pictures_;
  TensorValues labels_;
  int worst_ = -1;
};

}  // namespace stepscope

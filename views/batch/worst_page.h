// SPDX-License-Identifier: GPL-3.0-or-later
// The row of the batch that did worst: what it adds to the loss, and which samples hold what is not finite.
#pragma once

#include <functional>

#include "views/batch/batch_source.h"
#include "views/common/details.h"
#include "views/common/view.h"

namespace stepscope {

class WorstPage : public Details {
  Q_OBJECT

 public:
  // `contents` gives those of an input that were fetched; nullptr otherwise.
  WorstPage(const ViewContext& context, const BatchSource& source, std::function<TensorPtr(int)> contents,
            QWidget* parent = nullptr);

  void ask();     // for the losses of the rows
  void forget();  // another graph
  void refresh();
  int worstSample() const;  // of the shown batch; -1 unknown

 signals:
  void contentsWanted(int sample, int place);  // of the worst row, counted from 0

 private:
  void fillNotFinite();
  void fillLosses();
  void fillWorst(const snapshot::RowLosses& losses);

  ViewContext context_;
  const BatchSource& source_;
  std::function<TensorPtr(int)> contents_;
  std::shared_ptr<const snapshot::RowLosses> losses_;  // the newest that holds values
};

}  // namespace stepscope

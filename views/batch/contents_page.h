// SPDX-License-Identifier: GPL-3.0-or-later
// One input of the batch as people think of it: integers with their mask, images as pictures with their labels.
#pragma once

#include <QStackedWidget>
#include <QTableView>
#include <map>
#include <set>
#include <utility>

#include "views/batch/batch_source.h"
#include "views/batch/picture_grid.h"
#include "views/batch/token_table.h"
#include "views/common/details.h"
#include "views/common/view.h"

namespace stepscope {

class ContentsPage : public QWidget {
  Q_OBJECT

 public:
  ContentsPage(const ViewContext& context, const BatchSource& source, QWidget* parent = nullptr);

  void fetch();          // what the shown input needs and is not there
  void take(int value);  // a tensor arrived
  void forget() {        // another batch
    whole_.clear();
    asked_.clear();
  }
  void setWorst(int sample) { worst_ = sample; }
  void goTo(int sample, int place);  // of the shown input, as soon as it is there
  void refresh();
  // Contents of an input of this batch, at least its beginning; nullptr when they were neither fetched nor recorded.
  TensorPtr contents(int input) const;

 private:
  void goToWanted();
  int shownInput() const;  // the selected one, else the first that can be shown; -1

  ViewContext context_;
  const BatchSource& source_;
  Details* caption_;
  QStackedWidget* pages_;
  QTableView* tokens_;
  TokenTable* tokenTable_;
  PictureGrid* pictures_;
  std::map<int, TensorPtr> whole_;
  std::set<int> asked_;  // whose whole contents were asked for
  int worst_ = -1;
  std::pair<int, int> wanted_{-1, -1};  // row and column of the tokens to go to
};

}  // namespace stepscope

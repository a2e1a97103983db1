// SPDX-License-Identifier: GPL-3.0-or-later
// The elements of the shown value as a table or a heat map, the slice that is shown, and the value and another tensor. An
// element is edited in its cell; what the worker refuses is said above the table, and the cell keeps what was typed.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QStackedWidget>
#include <QTabBar>
#include <QTableView>

#include "views/common/view.h"
#include "views/tensors/compare_page.h"
#include "views/tensors/element_editor.h"
#include "views/tensors/heat_map.h"
#include "views/tensors/tensor_table.h"

namespace stepscope {

class ElementsPanel : public QWidget {
  Q_OBJECT

 public:
  enum Page { kValues, kHeatMap, kCompare };

  explicit ElementsPanel(const ViewContext& context, QWidget* parent = nullptr);

  // `dims` of the whole value; empty when they are not known. Another value, or one of another rank, begins with its first
  // plane.
  void setValue(int value, const std::vector<std::int64_t>& dims);
  void refresh();  // to what the store holds of it
  void openPage(Page page) { tabs_->setCurrentIndex(page); }
  void findSlice();
  void show(const std::vector<qint64>& index);  // the slice around the element, which is chosen
  void goTo(const std::vector<qint64>& index);  // the same, in the table, with the keyboard
  const Slice& wanted() const { return wanted_; }
  ComparePage& comparison() { return *comparison_; }
  HeatMap& heatMap() { return *heat_; }

 signals:
  void sliceWanted();  // wanted() is another one

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void makeTable();
  void fitColumns();
  void showPage();
  void applySlice();
  void edit(const QModelIndex& index, double number, const QString& text);
  void showEdit();  // how the last one ended
  void say(const QString& problem);
  void copy();

  ViewContext context_;
  QTabBar* tabs_;
  QLineEdit* slice_;
  QLabel* scale_;
  QLabel* problem_;
  QLabel* none_;  // in place of elements: why there are none
  QStackedWidget* pages_;
  QTableView* elements_;
  TensorTable* table_;
  ElementEditor* editor_;
  struct Typed {
    int value = -1;
    std::vector<qint64> index;
    QString text;
  };
  Typed typed_;  // the element that was edited last
  HeatMap* heat_;
  ComparePage* comparison_;
  int value_ = -1;
  std::vector<std::int64_t> dims_;
  std::vector<qint64> goal_;  // the element to choose when its slice has come
  Slice wanted_;
};

}  // namespace stepscope

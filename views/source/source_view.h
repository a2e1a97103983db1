// SPDX-License-Identifier: GPL-3.0-or-later
// The user's program: with the file at hand all its lines, otherwise those that were recorded at export; in the margin the
// time, bytes and alerts of what came from each line. A file is read only where the path map, which the user makes, leads to
// it.
#pragma once

#include <QComboBox>
#include <QToolButton>

#include "views/common/details.h"
#include "views/common/table_panel.h"
#include "views/source/path_map.h"
#include "views/source/source_lines.h"

namespace stepscope {

class SourceView : public TablePanel {
  Q_OBJECT

 public:
  explicit SourceView(const ViewContext& context, QWidget* parent = nullptr);
  QString headerText() const override;
  QString emptyText() const override;
  QString saveState() const override;  // filter and path map
  void restoreState(const QString& state) override;

  void setPathMap(PathMap map);
  const PathMap& pathMap() const { return map_; }
  // The file that was recorded under the shown name lies here: learns a prefix from it.
  void locate(const QString& chosen);

 protected:
  void refill() override;
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void makeHeader();
  bool readGraph();  // false: the lines of the graph are being collected; a refill follows
  std::map<int, SourceLine> linesOf(const QString& file) const;
  void followSelection();
  void chooseFile();
  void askFile();
  void editMap();
  void fillRows();
  void fillNodes();
  TableRow rowOf(int number, const SourceLine& line, const QString& code, std::int64_t most) const;

  QComboBox* file_;
  QToolButton* locate_;
  QToolButton* mapButton_;
  QLabel* notice_;
  Details* nodes_;
  PathMap map_;
  QString shown_;  // recorded name of the file
  QString local_;  // where it lies; empty: not at hand
  std::shared_ptr<const SourceIndex> index_;
  bool indexing_ = false;
  std::map<int, SourceLine> lines_;
  mutable GraphPtr looked_;
  mutable bool hasLines_ = false;
};

}  // namespace stepscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/view_list.h"

#include "view_list.inc"

namespace stepscope {
namespace {

template <typename T>
View* makeView(const ViewContext& context) {
  return new T(context);
}

}  // namespace

const std::vector<ViewEntry>& viewList() {
  static const std::vector<ViewEntry> kViews = {SS_VIEW_ENTRIES};
  return kViews;
}

}  // namespace stepscope

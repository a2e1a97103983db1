// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/view_list.h"

#include "views/instructions/instructions_view.h"

namespace stepscope {
namespace {

template <typename T>
View* make(const ViewContext& context) {
  return new T(context);
}

}  // namespace

const std::vector<ViewEntry>& viewList() {
  static const std::vector<ViewEntry> kViews = {
      {"instructions", "Instructions", make<InstructionsView>},
  };
  return kViews;
}

}  // namespace stepscope

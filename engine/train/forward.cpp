#include "engine/train/forward.h"

#include "engine/step/stepper.h"

namespace stepscope {

Result<std::vector<std::pair<std::string, Tensor>>> runForward(Session& session, const std::vector<std::string>& fetch) {
  SS_TRY(session.buildForward(fetch));
  SS_TRY(session.step());
  std::vector<std::pair<std::string, Tensor>> results;
  for (const ValueId id : session.runningGraph().outputs()) {
    const std::string& name = session.runningGraph().value(id).name;
    const auto view = session.stepper().value(id);
    if (!view) return tl::make_unexpected(view.error());
    results.emplace_back(name, Tensor(view->dtype, view->dims, nullptr, view->data).clone());
  }
  return results;
}

}  // namespace stepscope

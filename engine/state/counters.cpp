#include "engine/state/counters.h"

#include <map>
#include <utility>

namespace stepscope {

void StateCounters::willUpdate(const StateNameSet& states) {
  if (!states || (moments && moments->live && (moments->live == states || *moments->live == *states))) return;
  moments = std::make_shared<const MomentAges>(
      MomentAges{moments ? moments->all(updates) : std::map<std::string, std::int64_t>{}, updates, states});
}

}  // namespace stepscope

// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/streams/stream_schedule.h"

#include <algorithm>

namespace stepscope {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// The last instruction of every lane that is known to have run.
using Known = std::vector<int>;

void learn(Known& known, const Known& other) {
  for (std::size_t lane = 0; lane < known.size(); ++lane) known[lane] = std::max(known[lane], other[lane]);
}

struct Accesses {
  Known reads, writes;  // by lane: the last one
};

}  // namespace

StreamSchedule StreamSchedule::of(const PlanSnapshot& plan, const std::vector<int>& streams, int count,
                                  const std::vector<std::int64_t>& ns) {
  StreamSchedule made;
  const int size = plan.size();
  const std::size_t lanes = at(count) + 1;  // the host behind the streams
  made.places.resize(at(size));
  std::vector<Accesses> accesses(at(plan.plan().buffers_size()), {Known(lanes, -1), Known(lanes, -1)});
  std::vector<Known> known(at(size));                      // before an instruction runs, and then itself
  std::vector<int> tail(lanes, -1), behind(at(size), -1);  // behind: what it could not begin before
  int lastOnHost = -1;
  for (int i = 0; i < size; ++i) {
    const snapshot::Instruction& in = *plan.instruction(i);
    Slot& slot = made.places[at(i)];
    if (in.view()) continue;
    slot.lane = in.on_host().empty() ? std::clamp(streams[at(i)], 0, count - 1) : kHost;
    const std::size_t lane = slot.lane == kHost ? at(count) : at(slot.lane);
    Known& mine = known[at(i)] = Known(lanes, -1);
    const auto begins = [&](int other) {
      if (other < 0 || made.places[at(other)].end < slot.begin ||
          (behind[at(i)] >= 0 && made.places[at(other)].end == slot.begin))
        return;
      slot.begin = made.places[at(other)].end;
      behind[at(i)] = other;
    };
    const auto follow = [&](int other) {
      begins(other);
      if (other >= 0) learn(mine, known[at(other)]);
    };
    follow(tail[lane]);
    follow(lastOnHost);  // nothing is issued before it is done
    const auto need = [&](const Known& others) {
      for (std::size_t l = 0; l < lanes; ++l) {
        const int other = others[l];
        if (other < 0 || l == lane || mine[l] >= other) continue;
        made.waits.push_back({other, i});
        follow(other);
      }
    };
    const auto root = [&](int buffer) {
      const int own = plan.root(buffer);
      return own >= 0 && own < plan.plan().buffers_size() ? own : -1;
    };
    for (const auto& operand : in.inputs())
      if (const int b = root(operand.buffer()); b >= 0) need(accesses[at(b)].writes);
    for (const auto& operand : in.outputs())
      if (const int b = root(operand.buffer()); b >= 0) {
        need(accesses[at(b)].writes);
        need(accesses[at(b)].reads);
      }
    for (const auto& operand : in.inputs())
      if (const int b = root(operand.buffer()); b >= 0) accesses[at(b)].reads[lane] = i;
    for (const auto& operand : in.outputs())
      if (const int b = root(operand.buffer()); b >= 0) accesses[at(b)].writes[lane] = i;
    mine[lane] = i;
    slot.end = slot.begin + ns[at(i)];
    tail[lane] = i;
    if (slot.lane == kHost) lastOnHost = i;
  }
  int last = -1;
  for (int i = 0; i < size; ++i)
    if (!plan.instruction(i)->view() && (last < 0 || made.places[at(i)].end > made.places[at(last)].end)) last = i;
  if (last >= 0) made.totalNs = made.places[at(last)].end;
  for (; last >= 0; last = behind[at(last)]) {
    made.places[at(last)].critical = true;
    made.critical.push_back(last);
  }
  std::reverse(made.critical.begin(), made.critical.end());
  return made;
}

}  // namespace stepscope

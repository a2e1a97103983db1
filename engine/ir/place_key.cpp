#include "engine/ir/place_key.h"

#include <algorithm>
#include <optional>

namespace stepscope {
namespace {

// Positions of nodes in an order; -1 where a node has no instruction.
class Places {
 public:
  Places(const KeyIndex& index, std::span<const NodeId> order) : places_(index.graph().nodeCapacity(), -1) {
    for (std::size_t i = 0; i < order.size(); ++i)
      if (order[i]) places_[static_cast<std::size_t>(order[i].index)] = static_cast<int>(i);
  }
  int of(NodeId node) const { return node ? places_[static_cast<std::size_t>(node.index)] : -1; }

 private:
  std::vector<int> places_;
};

}  // namespace

PlaceKey placeOf(const KeyIndex& index, std::span<const NodeId> order, int position) {
  PlaceKey place;
  const auto begin = static_cast<std::size_t>(position);
  for (std::size_t i = begin; i < order.size() && place.after.size() < PlaceKey::kNeighbours; ++i) {
    const NodeKey key = index.keyOf(order[i]);
    if (!place.next)
      key ? static_cast<void>(place.next = key) : static_cast<void>(++place.unnamed);
    else if (key)
      place.after.push_back(key);
  }
  for (std::size_t i = begin; i-- > 0 && place.before.size() < PlaceKey::kNeighbours;)
    if (const NodeKey key = index.keyOf(order[i])) place.before.push_back(key);
  return place;
}

int findPlace(const PlaceKey& place, const KeyIndex& index, std::span<const NodeId> order) {
  const Places places(index, order);
  // Instructions without a key that belong to what follows them.
  const auto back = [&](int at) {
    for (int i = 0; i < place.unnamed && at > 0 && !index.keyOf(order[static_cast<std::size_t>(at) - 1]); ++i) --at;
    return at;
  };
  if (!place.next) return back(static_cast<int>(order.size()));
  if (const int at = places.of(index.find(place.next)); at >= 0) return back(at);
  if (const int at = places.of(index.carrier(place.next)); at >= 0) return at;
  for (const NodeKey& key : place.before)
    if (const int at = places.of(index.find(key)); at >= 0) return at + 1;
  for (const NodeKey& key : place.after)
    if (const int at = places.of(index.find(key)); at >= 0) return at;
  return 0;
}

std::vector<int> mapPositions(const KeyIndex& from, std::span<const NodeId> fromOrder, const KeyIndex& to,
                              std::span<const NodeId> toOrder) {
  const Places places(to, toOrder);
  const std::size_t count = fromOrder.size();
  std::vector<int> target(count, -1);
  for (std::size_t i = 0; i < count; ++i)
    if (const NodeKey key = from.keyOf(fromOrder[i])) target[i] = places.of(to.find(key));
  // The most instructions whose order both plans share: the longest increasing subsequence of the targets. Only these tie
  // the plans to each other, so one instruction that another plan runs much later does not take the others along.
  std::vector<std::size_t> ends;                  // by length - 1: the element that ends the best subsequence
  std::vector<std::ptrdiff_t> before(count, -1);  // the element before it
  for (std::size_t i = 0; i < count; ++i) {
    if (target[i] < 0) continue;
    const auto it = std::lower_bound(ends.begin(), ends.end(), target[i],
                                     [&](std::size_t element, int value) { return target[element] < value; });
    if (it != ends.begin()) before[i] = static_cast<std::ptrdiff_t>(*(it - 1));
    if (it == ends.end())
      ends.push_back(i);
    else
      *it = i;
  }
  std::vector<bool> shared(count, false);
  for (std::ptrdiff_t i = ends.empty() ? -1 : static_cast<std::ptrdiff_t>(ends.back()); i >= 0;
       i = before[static_cast<std::size_t>(i)])
    shared[static_cast<std::size_t>(i)] = true;
  std::vector<int> positions(count + 1, 0);
  int ran = 0;
  for (std::size_t i = 0; i < count; ++i) {
    positions[i] = i == 0 ? 0 : shared[i] ? target[i] : ran;
    if (shared[i]) ran = target[i] + 1;
  }
  positions[count] = static_cast<int>(toOrder.size());
  return positions;
}

int mapPosition(const KeyIndex& from, std::span<const NodeId> fromOrder, int position, const KeyIndex& to,
                std::span<const NodeId> toOrder) {
  return mapPositions(from, fromOrder, to, toOrder)[static_cast<std::size_t>(position)];
}

}  // namespace stepscope

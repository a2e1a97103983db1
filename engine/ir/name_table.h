// Which node or value bears a name: a flat hash table of ids, without the names, which nodes and values hold themselves.
// Copies share the parts in which no name was added or removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "engine/ir/shared_blocks.h"

namespace stepscope {

class NameTable {
 public:
  std::size_t size() const { return live_; }

  // The id that bears `name`, -1 for none. `nameOf(id)` gives the name of an id that was inserted and not erased; nothing
  // for one that has none any more.
  template <typename NameOf>
  std::int32_t find(std::string_view name, NameOf&& nameOf) const {
    if (slots_.empty()) return kEmpty;
    const std::uint32_t hash = hashOf(name);
    for (std::size_t at = hash & mask();; at = (at + 1) & mask()) {
      const Slot& slot = slots_[at];
      if (slot.id == kEmpty) return kEmpty;
      if (slot.hash == hash && slot.id >= 0 && nameOf(slot.id) == name) return slot.id;
    }
  }
  // The name must not be in the table.
  void insert(std::string_view name, std::int32_t id) {
    if ((used_ + 1) * 4 > slots_.size() * 3) rehash();
    const std::uint32_t hash = hashOf(name);
    std::size_t at = hash & mask();
    while (slots_[at].id >= 0) at = (at + 1) & mask();
    if (slots_[at].id == kEmpty) ++used_;
    slots_.edit(at) = {hash, id};
    ++live_;
  }
  // Nothing happens where the id was not inserted under that name.
  void erase(std::string_view name, std::int32_t id) {
    if (slots_.empty()) return;
    for (std::size_t at = hashOf(name) & mask(); slots_[at].id != kEmpty; at = (at + 1) & mask())
      if (slots_[at].id == id) {
        slots_.edit(at).id = kErased;
        --live_;
        return;
      }
  }

 private:
  static constexpr std::int32_t kEmpty = -1, kErased = -2;
  struct Slot {
    std::uint32_t hash = 0;
    std::int32_t id = kEmpty;
  };
  using Slots = SharedBlocks<Slot, 512>;

  static std::uint32_t hashOf(std::string_view name) {
    const std::uint64_t hash = std::hash<std::string_view>{}(name);
    return static_cast<std::uint32_t>(hash ^ (hash >> 32));
  }
  std::size_t mask() const { return slots_.size() - 1; }
  void rehash() {
    std::size_t size = 16;
    while (size < (live_ + 1) * 2) size *= 2;
    const Slots before = std::exchange(slots_, Slots(size));
    used_ = live_;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const Slot& slot = before[i];
      if (slot.id < 0) continue;
      std::size_t at = slot.hash & mask();
      while (slots_[at].id >= 0) at = (at + 1) & mask();
      slots_.edit(at) = slot;
    }
  }

  Slots slots_;                      // linear probing; the number is a power of two
  std::size_t used_ = 0, live_ = 0;  // used: live or erased
};

// The last suffix that was tried for a wished name. Wishes whose hashes agree share one: a number is left out, no name is
// given twice.
class SuffixTable {
 public:
  int& of(std::string_view wish) {
    if ((used_ + 1) * 4 > slots_.size() * 3) rehash();
    const std::uint64_t key = std::hash<std::string_view>{}(wish) | 1u;
    Slot& slot = slots_.edit(placeOf(slots_, key));
    if (slot.key == 0) {
      slot.key = key;
      ++used_;
    }
    return slot.last;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;  // 0: empty
    int last = 0;
  };
  using Slots = SharedBlocks<Slot>;

  static std::size_t placeOf(const Slots& slots, std::uint64_t key) {
    std::size_t at = (key >> 1) & (slots.size() - 1);
    while (slots[at].key != 0 && slots[at].key != key) at = (at + 1) & (slots.size() - 1);
    return at;
  }
  void rehash() {
    const Slots before = std::exchange(slots_, Slots(slots_.empty() ? 16 : slots_.size() * 2));
    for (std::size_t i = 0; i < before.size(); ++i)
      if (before[i].key != 0) slots_.edit(placeOf(slots_, before[i].key)) = before[i];
  }

  Slots slots_;
  std::size_t used_ = 0;
};

}  // namespace stepscope

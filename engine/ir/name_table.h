// Which node or value bears a name: a flat hash table of ids, without the names, which nodes and values hold themselves. A
// graph of 100,000 nodes copies it in a fraction of a millisecond.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace stepscope {

class NameTable {
 public:
  std::size_t size() const { return live_; }

  // The id that bears `name`, -1 for none. `nameOf(id)` gives the name of an id that was inserted and not erased.
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
    slots_[at] = {hash, id};
    ++live_;
  }
  // Nothing happens where the id was not inserted under that name.
  void erase(std::string_view name, std::int32_t id) {
    if (slots_.empty()) return;
    for (std::size_t at = hashOf(name) & mask(); slots_[at].id != kEmpty; at = (at + 1) & mask())
      if (slots_[at].id == id) {
        slots_[at].id = kErased;
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

  static std::uint32_t hashOf(std::string_view name) {
    const std::uint64_t hash = std::hash<std::string_view>{}(name);
    return static_cast<std::uint32_t>(hash ^ (hash >> 32));
  }
  std::size_t mask() const { return slots_.size() - 1; }
  void rehash() {
    std::size_t size = 16;
    while (size < (live_ + 1) * 2) size *= 2;
    std::vector<Slot> before(size);
    before.swap(slots_);
    used_ = live_;
    for (const Slot& slot : before) {
      if (slot.id < 0) continue;
      std::size_t at = slot.hash & mask();
      while (slots_[at].id >= 0) at = (at + 1) & mask();
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;          // linear probing; the number is a power of two
  std::size_t used_ = 0, live_ = 0;  // used: live or erased
};

// The last suffix that was tried for a wished name. Wishes whose hashes agree share one: a number is left out, no name is
// given twice.
class SuffixTable {
 public:
  int& of(std::string_view wish) {
    if ((used_ + 1) * 4 > slots_.size() * 3) rehash();
    Slot& slot = slotOf(slots_, std::hash<std::string_view>{}(wish) | 1u);
    if (slot.key == 0) {
      slot.key = std::hash<std::string_view>{}(wish) | 1u;
      ++used_;
    }
    return slot.last;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;  // 0: empty
    int last = 0;
  };
  static Slot& slotOf(std::vector<Slot>& slots, std::uint64_t key) {
    std::size_t at = (key >> 1) & (slots.size() - 1);
    while (slots[at].key != 0 && slots[at].key != key) at = (at + 1) & (slots.size() - 1);
    return slots[at];
  }
  void rehash() {
    std::vector<Slot> larger(slots_.empty() ? 16 : slots_.size() * 2);
    for (const Slot& slot : slots_)
      if (slot.key != 0) slotOf(larger, slot.key) = slot;
    slots_.swap(larger);
  }

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

}  // namespace stepscope

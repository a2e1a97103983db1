// Attributes of a node, as kernels and op rules read them. Subgraphs are held by engine/ir, not here.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/copy_on_write.h"
#include "kernels/tensor.h"

namespace stepscope {

using AttrValue = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<float>,
                               std::vector<std::string>, Tensor, std::vector<Tensor>>;

// Ordered by name, so printing and hashing are stable. Copies share the entries until one of them is changed.
class Attributes {
  using Entries = std::map<std::string, AttrValue, std::less<>>;

 public:
  // Out of line, as set() and entries() are: every file that sees a node would otherwise compile the copies of AttrValue
  // again.
  Attributes();
  Attributes(std::initializer_list<std::pair<const std::string, AttrValue>> entries);
  Attributes(const Attributes& other);
  Attributes(Attributes&& other) noexcept;
  Attributes& operator=(const Attributes& other);
  Attributes& operator=(Attributes&& other) noexcept;
  ~Attributes();

  bool has(std::string_view name) const { return find(name) != nullptr; }
  // The typed value, or `fallback` when the attribute is absent or of another type.
  std::int64_t integer(std::string_view name, std::int64_t fallback) const;
  float real(std::string_view name, float fallback) const;
  std::string text(std::string_view name, std::string fallback) const;
  std::vector<std::int64_t> integers(std::string_view name, std::vector<std::int64_t> fallback = {}) const;
  std::vector<float> reals(std::string_view name, std::vector<float> fallback = {}) const;
  const Tensor* tensor(std::string_view name) const;

  const AttrValue* find(std::string_view name) const;
  void set(std::string name, AttrValue value);
  void erase(std::string_view name);
  const Entries& entries() const;
  // Takes over the memory of equal ones that were given lately in this thread: layers that repeat have the same. Those with
  // tensors stay alone.
  void shareEqual();
  bool empty() const { return !entries_.holds(); }

  // Equal names, types and contents (tensors by value).
  friend bool operator==(const Attributes& a, const Attributes& b);

 private:
  CopyOnWrite<Entries> entries_;  // holds some, or nothing
};

}  // namespace stepscope

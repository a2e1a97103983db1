#include "kernels/attributes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace stepscope {
namespace {

template <typename T>
T valueOr(const AttrValue* value, T fallback) {
  if (value == nullptr) return fallback;
  const T* typed = std::get_if<T>(value);
  return typed ? *typed : fallback;
}

bool sameTensor(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.dims() != b.dims()) return false;
  if (a.dtype() == DType::kString)
    return std::equal(a.as<std::string>().begin(), a.as<std::string>().end(), b.as<std::string>().begin());
  return a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

bool sameValue(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        const T& y = std::get<T>(b);
        if constexpr (std::is_same_v<T, Tensor>)
          return sameTensor(x, y);
        else if constexpr (std::is_same_v<T, std::vector<Tensor>>)
          return std::equal(x.begin(), x.end(), y.begin(), y.end(), sameTensor);
        else
          return x == y;
      },
      a);
}

// Bit for bit: what is shared must not take 0 for -0.
template <typename T>
bool sameBits(const T& a, const T& b) {
  return a == b;
}
bool sameBits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }
bool sameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) { return sameBits(x, y); });
}

template <typename T>
constexpr bool kIsShared = !std::is_same_v<T, Tensor> && !std::is_same_v<T, std::vector<Tensor>>;

template <typename T>
std::size_t hashOf(const T& value) {
  if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return std::hash<T>{}(value);
  } else if constexpr (kIsShared<T>) {
    std::size_t hash = value.size();
    for (const auto& element : value) hash = hash * 31 + hashOf(element);
    return hash;
  }
  return 0;
}

}  // namespace

void Attributes::shareEqual() {
  thread_local std::array<CopyOnWrite<Entries>, 64> lately;
  if (empty()) return;
  std::size_t hash = 0;
  for (const auto& [name, value] : entries()) {
    if (!std::visit([](const auto& x) { return kIsShared<std::decay_t<decltype(x)>>; }, value)) return;
    hash = (hash ^ (hash >> 29)) * 0x9e3779b97f4a7c15u + std::hash<std::string>{}(name) +
           std::visit([](const auto& x) { return hashOf(x); }, value);
  }
  CopyOnWrite<Entries>& known = lately[(hash ^ (hash >> 32)) % lately.size()];
  const auto same = [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.index() == b.second.index() &&
           std::visit(
               [&](const auto& x) {
                 using T = std::decay_t<decltype(x)>;
                 if constexpr (kIsShared<T>) return sameBits(x, std::get<T>(b.second));
                 return false;
               },
               a.second);
  };
  if (std::equal(entries().begin(), entries().end(), known->begin(), known->end(), same))
    entries_ = known;
  else
    known = entries_;
}

Attributes::Attributes() = default;
Attributes::Attributes(std::initializer_list<std::pair<const std::string, AttrValue>> entries)
    : entries_(entries.size() > 0 ? CopyOnWrite<Entries>(entries) : CopyOnWrite<Entries>()) {}
Attributes::Attributes(const Attributes& other) = default;
Attributes::Attributes(Attributes&& other) noexcept = default;
Attributes& Attributes::operator=(const Attributes& other) = default;
Attributes& Attributes::operator=(Attributes&& other) noexcept = default;
Attributes::~Attributes() = default;

const Attributes::Entries& Attributes::entries() const { return *entries_; }

void Attributes::set(std::string name, AttrValue value) {
  entries_.edit().insert_or_assign(std::move(name), std::move(value));
}

const AttrValue* Attributes::find(std::string_view name) const {
  const auto it = entries().find(name);
  return it == entries().end() ? nullptr : &it->second;
}

void Attributes::erase(std::string_view name) {
  if (!has(name)) return;
  Entries& entries = entries_.edit();
  entries.erase(entries.find(name));
  if (entries.empty()) entries_.clear();
}

std::int64_t Attributes::integer(std::string_view name, std::int64_t fallback) const {
  return valueOr(find(name), fallback);
}
float Attributes::real(std::string_view name, float fallback) const { return valueOr(find(name), fallback); }
std::string Attributes::text(std::string_view name, std::string fallback) const {
  return valueOr(find(name), std::move(fallback));
}
std::vector<std::int64_t> Attributes::integers(std::string_view name, std::vector<std::int64_t> fallback) const {
  return valueOr(find(name), std::move(fallback));
}
std::vector<float> Attributes::reals(std::string_view name, std::vector<float> fallback) const {
  return valueOr(find(name), std::move(fallback));
}
const Tensor* Attributes::tensor(std::string_view name) const {
  const AttrValue* value = find(name);
  return value ? std::get_if<Tensor>(value) : nullptr;
}

bool operator==(const Attributes& a, const Attributes& b) {
  return a.entries_.isSame(b.entries_) ||
         std::equal(a.entries().begin(), a.entries().end(), b.entries().begin(), b.entries().end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && sameValue(x.second, y.second); });
}

}  // namespace stepscope

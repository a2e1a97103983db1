#include "kernels/attributes.h"

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

}  // namespace

Attributes::Attributes() = default;
Attributes::Attributes(std::initializer_list<std::pair<const std::string, AttrValue>> entries) : entries_(entries) {}
Attributes::Attributes(const Attributes& other) = default;
Attributes::Attributes(Attributes&& other) noexcept = default;
Attributes& Attributes::operator=(const Attributes& other) = default;
Attributes& Attributes::operator=(Attributes&& other) noexcept = default;
Attributes::~Attributes() = default;

void Attributes::set(std::string name, AttrValue value) { entries_.insert_or_assign(std::move(name), std::move(value)); }

const AttrValue* Attributes::find(std::string_view name) const {
  const auto it = entries_.find(name);
  return it == entries_.end() ? nullptr : &it->second;
}

void Attributes::erase(std::string_view name) {
  if (const auto it = entries_.find(name); it != entries_.end()) entries_.erase(it);
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
  return std::equal(a.entries().begin(), a.entries().end(), b.entries().begin(), b.entries().end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && sameValue(x.second, y.second); });
}

}  // namespace stepscope

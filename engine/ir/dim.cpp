#include "engine/ir/dim.h"

#include <algorithm>
#include <limits>

namespace stepscope {

namespace {

// Extents saturate: what is beyond int64 is no extent of anything, and later checks refuse it.
std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) return a > 0 ? INT64_MAX : INT64_MIN;
  return result;
}
std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
  return result;
}

}  // namespace

Dim Dim::symbol(std::string name) {
  Dim dim;
  dim.terms_ = std::make_shared<const Terms>(Terms{{Monomial{std::move(name)}, 1}});
  return dim;
}

Dim Dim::fromTerms(Terms terms, std::int64_t constant) {
  std::erase_if(terms, [](const auto& term) { return term.second == 0; });
  Dim dim(constant);
  if (!terms.empty()) dim.terms_ = std::make_shared<const Terms>(std::move(terms));
  return dim;
}

std::optional<std::string> Dim::asSymbol() const {
  if (!terms_ || constant_ != 0 || terms_->size() != 1) return std::nullopt;
  const auto& [monomial, coefficient] = *terms_->begin();
  if (coefficient != 1 || monomial.size() != 1) return std::nullopt;
  return monomial.front();
}

std::string Dim::text() const {
  if (!terms_) return std::to_string(constant_);
  std::string text;
  for (const auto& [monomial, coefficient] : *terms_) {
    if (coefficient < 0)
      text += "-";
    else if (!text.empty())
      text += "+";
    const std::int64_t magnitude = coefficient < 0 ? -coefficient : coefficient;
    std::string product = magnitude == 1 ? "" : std::to_string(magnitude);
    for (const std::string& name : monomial) product += (product.empty() ? "" : "*") + name;
    text += product;
  }
  if (constant_ > 0) text += "+" + std::to_string(constant_);
  if (constant_ < 0) text += std::to_string(constant_);
  return text;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) return Dim(sum(a.constant_, b.constant_));
  Dim::Terms terms = a.terms_ ? *a.terms_ : Dim::Terms{};
  if (b.terms_)
    for (const auto& [monomial, coefficient] : *b.terms_) terms[monomial] = sum(terms[monomial], coefficient);
  return Dim::fromTerms(std::move(terms), sum(a.constant_, b.constant_));
}

Dim operator-(const Dim& a, const Dim& b) { return a + Dim(-1) * b; }

Dim operator*(const Dim& a, const Dim& b) {
  const std::int64_t constant = product(a.constant_, b.constant_);
  if (a.known() && b.known()) return Dim(constant);
  Dim::Terms terms;
  const auto scale = [&](const Dim& polynomial, std::int64_t factor) {
    if (polynomial.terms_ && factor != 0)
      for (const auto& [monomial, coefficient] : *polynomial.terms_)
        terms[monomial] = sum(terms[monomial], product(coefficient, factor));
  };
  scale(a, b.constant_);
  scale(b, a.constant_);
  if (a.terms_ && b.terms_)
    for (const auto& [left, p] : *a.terms_)
      for (const auto& [right, q] : *b.terms_) {
        Dim::Monomial both = left;
        both.insert(both.end(), right.begin(), right.end());
        std::sort(both.begin(), both.end());
        terms[both] = sum(terms[both], product(p, q));
      }
  return Dim::fromTerms(std::move(terms), constant);
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.constant_ != b.constant_ || a.known() != b.known()) return false;
  return a.terms_ == b.terms_ || *a.terms_ == *b.terms_;
}

std::optional<Dim> Dim::divideExactly(const Dim& a, const Dim& b) {
  if (b.known()) {
    if (b.constant_ == 0 || a.constant_ % b.constant_ != 0) return std::nullopt;
    Terms terms;
    if (a.terms_)
      for (const auto& [monomial, coefficient] : *a.terms_) {
        if (coefficient % b.constant_ != 0) return std::nullopt;
        terms[monomial] = coefficient / b.constant_;
      }
    return fromTerms(std::move(terms), a.constant_ / b.constant_);
  }
  if (a == b) return Dim(1);
  if (a.known()) return a.constant_ == 0 ? std::optional<Dim>(Dim(0)) : std::nullopt;
  if (b.constant_ != 0 || b.terms_->size() != 1 || a.constant_ != 0) return std::nullopt;
  const auto& [divisor, factor] = *b.terms_->begin();
  Terms terms;
  std::int64_t constant = 0;
  for (const auto& [monomial, coefficient] : *a.terms_) {
    if (coefficient % factor != 0 || !std::includes(monomial.begin(), monomial.end(), divisor.begin(), divisor.end()))
      return std::nullopt;
    Monomial rest;
    std::set_difference(monomial.begin(), monomial.end(), divisor.begin(), divisor.end(), std::back_inserter(rest));
    if (rest.empty())
      constant += coefficient / factor;
    else
      terms[rest] += coefficient / factor;
  }
  return fromTerms(std::move(terms), constant);
}

Dim Dim::quotient(const char* name, const Dim& a, const Dim& b) {
  if (const auto exact = divideExactly(a, b)) return *exact;
  if (!b.known() || b.constant_ < 2) return symbol(std::string(name) + "((" + a.text() + ")/(" + b.text() + "))");
  // Whole multiples of the divisor come out, so that the same number has the same text: floor((h-2)/2) is floor(h/2) - 1.
  Terms out, rest;
  for (const auto& [monomial, coefficient] : *a.terms_) {
    out[monomial] = coefficient / b.constant_;
    rest[monomial] = coefficient % b.constant_;
  }
  const std::int64_t left = (a.constant_ % b.constant_ + b.constant_) % b.constant_;
  const Dim outside = fromTerms(std::move(out), (a.constant_ - left) / b.constant_),
            inside = fromTerms(std::move(rest), left);
  if (inside.known()) return outside + (name[0] == 'f' ? floorDiv(inside, b) : ceilDiv(inside, b));
  return outside + symbol(std::string(name) + "((" + inside.text() + ")/(" + b.text() + "))");
}

Dim Dim::floorDiv(const Dim& a, const Dim& b) {
  if (a.known() && b.known() && b.constant_ != 0) {
    const std::int64_t q = a.constant_ / b.constant_;
    return Dim(a.constant_ % b.constant_ != 0 && (a.constant_ < 0) != (b.constant_ < 0) ? q - 1 : q);
  }
  return quotient("floor", a, b);
}

Dim Dim::ceilDiv(const Dim& a, const Dim& b) {
  if (a.known() && b.known() && b.constant_ != 0) {
    const std::int64_t q = a.constant_ / b.constant_;
    return Dim(a.constant_ % b.constant_ != 0 && (a.constant_ < 0) == (b.constant_ < 0) ? q + 1 : q);
  }
  return quotient("ceil", a, b);
}

Dim Dim::max(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) return Dim(std::max(a.constant_, b.constant_));
  if (a == b) return a;
  return symbol("max(" + a.text() + "," + b.text() + ")");
}

Dim Dim::min(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) return Dim(std::min(a.constant_, b.constant_));
  if (a == b) return a;
  // TensorFlow's way of writing "to the end" of an axis.
  constexpr std::int64_t kNoBound = std::numeric_limits<std::int32_t>::max();
  if (a.known() && a.constant_ >= kNoBound) return b;
  if (b.known() && b.constant_ >= kNoBound) return a;
  return symbol("min(" + a.text() + "," + b.text() + ")");
}

Dim Dim::substitute(const std::map<std::string, Dim>& symbols) const {
  if (!terms_) return *this;
  Dim result(constant_);
  for (const auto& [monomial, coefficient] : *terms_) {
    Dim product(coefficient);
    for (const std::string& name : monomial) {
      const auto it = symbols.find(name);
      product = product * (it == symbols.end() ? symbol(name) : it->second);
    }
    result = result + product;
  }
  return result;
}

std::string shapeText(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + shape[i].text();
  return text + "]";
}

std::optional<std::vector<std::int64_t>> knownDims(const Shape& shape) {
  std::vector<std::int64_t> dims;
  for (const Dim& dim : shape) {
    if (!dim.known()) return std::nullopt;
    dims.push_back(dim.value());
  }
  return dims;
}

Shape shapeOf(const std::vector<std::int64_t>& dims) { return {dims.begin(), dims.end()}; }

Dim productOf(const Shape& shape, std::size_t begin, std::size_t end) {
  Dim product(1);
  for (std::size_t i = begin; i < end; ++i) product = product * shape[i];
  return product;
}

}  // namespace stepscope

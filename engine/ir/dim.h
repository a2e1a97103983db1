// One extent of a tensor's shape: a polynomial with integer coefficients over named symbols ("batch", "sequence + 1",
// "2*batch*heads"). Canonical: two dims are equal exactly when their polynomials are. Quotients that do not divide
// become opaque symbols such as "floor((s0+1)/2)", equal when spelled equally.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stepscope {

class Dim {
 public:
  Dim() = default;                               // 0
  Dim(std::int64_t value) : constant_(value) {}  // NOLINT: implicit, shape rules mix numbers and dims
  static Dim symbol(std::string name);

  bool known() const { return terms_ == nullptr; }
  // The number; only when known().
  std::int64_t value() const { return constant_; }
  std::optional<std::int64_t> asKnown() const { return known() ? std::optional(constant_) : std::nullopt; }
  // The symbol's name when this is exactly one symbol.
  std::optional<std::string> asSymbol() const;
  // "8", "batch", "sequence+1".
  std::string text() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b);
  // a / b where the division is exact as polynomials, else nothing.
  static std::optional<Dim> divideExactly(const Dim& a, const Dim& b);
  // floor(a / b) for b > 0; an opaque symbol when it does not divide. ceilDiv likewise.
  static Dim floorDiv(const Dim& a, const Dim& b);
  static Dim ceilDiv(const Dim& a, const Dim& b);
  // An opaque symbol "name(a,b)" unless both are known; used for max and min.
  static Dim max(const Dim& a, const Dim& b);
  static Dim min(const Dim& a, const Dim& b);

  // Replaces every symbol that occurs in the map.
  Dim substitute(const std::map<std::string, Dim>& symbols) const;

 private:
  using Monomial = std::vector<std::string>;       // sorted symbol names, repeated for powers
  using Terms = std::map<Monomial, std::int64_t>;  // without the constant; never empty, no zero coefficients
  static Dim fromTerms(Terms terms, std::int64_t constant);
  static Dim quotient(const char* name, const Dim& a, const Dim& b);

  std::int64_t constant_ = 0;
  std::shared_ptr<const Terms> terms_;  // null for a plain number
};

// Extents of a tensor, outermost first; each may be symbolic.
using Shape = std::vector<Dim>;

std::string shapeText(const Shape& shape);                               // "[batch, 8]"
std::optional<std::vector<std::int64_t>> knownDims(const Shape& shape);  // all numbers, or nothing
Shape shapeOf(const std::vector<std::int64_t>& dims);
Dim productOf(const Shape& shape, std::size_t begin, std::size_t end);  // half-open range of axes

}  // namespace stepscope

#include "engine/snapshot/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace stepscope::units {
namespace {

constexpr const char* kMinus = "−";

// Three significant digits without an exponent.
std::string three(double x) {
  const double size = std::abs(x);
  return fmt::format("{:.{}f}", x, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

std::string grouped(std::string digits) {
  for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<std::size_t>(i), 1, ',');
  return digits;
}

std::string positiveTime(double ns) {
  if (ns < 999.5) return fmt::format("{:.0f} ns", ns);
  if (ns < 999.5e3) return three(ns / 1e3) + " µs";
  if (ns < 999.5e6) return three(ns / 1e6) + " ms";
  if (ns < 59.995e9) return fmt::format("{:.2f} s", ns / 1e9);
  const auto tenths = static_cast<std::int64_t>(std::min(ns / 1e8, 9e17));
  return fmt::format("{}:{:02}.{}", tenths / 600, tenths / 10 % 60, tenths % 10);
}

std::string positiveBytes(double bytes) {
  if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
  constexpr std::array<const char*, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = bytes / 1024;
  std::size_t unit = 0;
  for (; value >= 1023.5 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  // "192 KiB" rather than "192.0 KiB"; 1.00 keeps its digits, because 1 looks like an estimate.
  const bool whole = value >= 9.995 && std::abs(value - std::round(value)) < 1e-9;
  return fmt::format("{} {}", whole ? fmt::format("{:.0f}", value) : three(value), kUnits[unit]);
}

std::string signless(double x, std::string (*text)(double)) {
  if (!std::isfinite(x)) return number(x);
  return (x < 0 ? kMinus : "") + text(std::abs(x));
}

std::string signedText(double x, std::string (*text)(double)) {
  if (x == 0) return "0";
  return (x > 0 ? "+" : "") + signless(x, text);
}

std::string rate(double amount, double ns, const char* unit) {
  if (!(amount > 0) || !(ns > 0)) return {};
  const double perSecond = amount / (ns * 1e-9);
  return countShort(perSecond) + (perSecond < 999.5 ? " " : "") + unit;
}

}  // namespace

std::string time(double ns) { return signless(ns, positiveTime); }
std::string bytes(double n) { return signless(n, positiveBytes); }
std::string time(std::int64_t ns) { return time(static_cast<double>(ns)); }
std::string bytes(std::int64_t n) { return bytes(static_cast<double>(n)); }

std::string timeExact(double ns) {
  return std::isfinite(ns) ? count(std::llround(std::clamp(ns, -9e18, 9e18))) + " ns" : number(ns);
}

std::string bytesExact(std::int64_t n) { return n == 1 ? "1 byte" : count(n) + " bytes"; }

std::string count(std::int64_t n) {
  const auto size = n < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
  return (n < 0 ? kMinus : "") + grouped(fmt::format("{}", size));
}

std::string countShort(double n) {
  const double size = std::abs(n);
  if (size < 999.5) return fmt::format("{:.{}f}", n, size < 9.95 && size != std::floor(size) ? 1 : 0);
  for (const auto& [factor, unit] : {std::pair(1e3, "k"), std::pair(1e6, "M"), std::pair(1e9, "G")})
    if (size < 999.5 * factor) return fmt::format("{} {}", three(n / factor), unit);
  return three(n / 1e12) + " T";
}

std::string flopRate(double flops, double ns) { return rate(flops, ns, "FLOP/s"); }
std::string byteRate(double bytes, double ns) { return rate(bytes, ns, "B/s"); }

double signless(double x) { return std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x; }

std::string number(double x, int significant) {
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x > 0 ? "∞" : "−∞";
  const std::string sign = std::signbit(x) ? kMinus : "";
  const double size = std::abs(x);
  if (size == 0) return sign + "0";
  if (size >= 1e-3 && size < std::pow(10.0, std::max(significant, 6))) {
    if (size == std::floor(size)) return sign + fmt::format("{:.0f}", size);
    const int before = static_cast<int>(std::floor(std::log10(size))) + 1;
    return sign + fmt::format("{:.{}f}", size, std::clamp(significant - before, 0, 17));
  }
  const std::string text = fmt::format("{:.{}e}", size, significant - 1);
  const auto e = text.find('e');
  const int exponent = std::stoi(text.substr(e + 1));
  return fmt::format("{}{}e{}{}", sign, text.substr(0, e), exponent < 0 ? kMinus : "", std::abs(exponent));
}

std::string numberShort(double x, int significant) {
  std::string text = number(x, significant);
  const auto point = text.find('.');
  if (point == std::string::npos) return text;
  const auto end = std::min(text.find('e', point), text.size());
  auto last = text.find_last_not_of('0', end - 1);
  if (last != point) ++last;
  return text.erase(last, end - last);
}

std::string percent(double ratio) {
  if (ratio > 0 && ratio < 0.0005) return "<0.1 %";
  return fmt::format("{}{:.1f} %", ratio < 0 ? kMinus : "", std::abs(ratio) * 100);
}

std::string timeDifference(double ns) { return signedText(ns, positiveTime); }
std::string bytesDifference(double bytes) { return signedText(bytes, positiveBytes); }

std::string change(double from, double to) {
  const double p = 100 * (to - from) / from;
  if (from == 0 || !std::isfinite(p)) return {};
  const std::string digits = fmt::format("{:.{}f}", std::abs(p), std::abs(p) < 9.95 ? 1 : 0);
  if (digits == "0.0") return "0 %";
  return fmt::format("{}{} %", p > 0 ? "+" : kMinus, digits);
}

}  // namespace stepscope::units

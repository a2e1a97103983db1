#include "kernels/emulated/order.h"

#include <fmt/format.h>

#include <charconv>

namespace stepscope::emulated {
namespace {

Result<std::int64_t> numberOf(const std::string& name, const std::string& item, const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= 0) return number;
  return invalid(fmt::format("device '{}': {} is '{}'; expected a number", name, item, text));
}

}  // namespace

Result<Order> Order::of(const std::string& name) {
  Order order;
  for (std::size_t from = name.find(':'); from != std::string::npos;) {
    const std::size_t to = name.find(',', ++from);
    const std::string text = name.substr(from, to == std::string::npos ? to : to - from);
    const std::size_t equals = text.find('=');
    const std::string item = text.substr(0, equals), value = equals == std::string::npos ? "" : text.substr(equals + 1);
    if (item == "no-device")
      return unsupported(fmt::format("device '{}': no GPU was found; expected one, or --device cpu", name));
    if (item == "old-driver")
      return unsupported(
          fmt::format("device '{}': the driver knows CUDA 11.4; expected 12.0 or newer, or --device cpu", name));
    if (item == "streams" && (value == "eager" || value == "lazy")) {
      order.eager = value == "eager";
    } else if (item == "checks" && (value == "bounds" || value == "all")) {
      order.tracked = value == "all";
    } else if (item == "lacks" && !value.empty()) {
      order.lacks.insert(value);
    } else if (item == "seed") {
      SS_ASSIGN(const std::int64_t seed, numberOf(name, item, value));
      order.seed = static_cast<std::uint64_t>(seed);
    } else if (item == "fail-allocation") {
      SS_ASSIGN(order.failAllocation, numberOf(name, item, value));
    } else if (item == "fail-launch") {
      SS_ASSIGN(order.failLaunch, numberOf(name, item, value));
    } else if (item == "lose-device") {
      SS_ASSIGN(order.loseDevice, numberOf(name, item, value));
    } else if (item == "memory") {
      SS_ASSIGN(order.memory, numberOf(name, item, value));
    } else if (item == "drop-records") {
      SS_ASSIGN(order.dropRecords, numberOf(name, item, value));
    } else {
      return invalid(fmt::format(
          "device '{}': '{}' is unknown; expected seed=N, streams=eager|lazy, checks=bounds|all, "
          "lacks=OP, fail-allocation=N, fail-launch=N, lose-device=N, drop-records=N, memory=N, no-device or old-driver",
          name, text));
    }
    from = to;
  }
  return order;
}

}  // namespace stepscope::emulated

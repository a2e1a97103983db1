// The events of a Chrome trace as text. Process 1 is the worker.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace stepscope::storage {

// As a string of JSON; bytes that are no UTF-8 are replaced.
inline std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class TraceWriter {
 public:
  static constexpr int kProcess = 1;
  // `base`: the time that is 0.
  explicit TraceWriter(std::int64_t base) : base_(base) {}

  // `body`: the members of the event's object.
  void event(const std::string& body) {
    text_ += first_ ? "\n  {" : ",\n  {";
    first_ = false;
    text_ += body;
    text_ += '}';
  }
  // Times in nanoseconds of the worker's clock; `arguments`: the members of "args".
  void complete(const std::string& category, const std::string& name, int thread, std::int64_t begin, std::int64_t ns,
                const std::string& arguments) {
    event(fmt::format(R"("ph": "X", "cat": "{}", "name": {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{{}}})",
                      category, quoted(name), kProcess, thread, at(begin), micro(ns), arguments));
  }
  // An arrow: 's' where it begins, 'f' where it ends.
  void flow(char kind, const char* category, std::int64_t id, int thread, std::int64_t time) {
    event(fmt::format(R"("ph": "{}", "cat": "{}", "name": "{}", "id": {}, "pid": {}, "tid": {}, "ts": {}{})", kind, category,
                      category, id, kProcess, thread, at(time), kind == 'f' ? R"(, "bp": "e")" : ""));
  }
  void counter(const std::string& name, const std::string& key, std::int64_t time, double value) {
    if (!std::isfinite(value)) return;
    event(fmt::format(R"("ph": "C", "cat": "counter", "name": "{}", "pid": {}, "tid": 0, "ts": {}, "args": {{"{}": {}}})",
                      name, kProcess, at(time), key, value));
  }
  void metadata(const std::string& what, int thread, const std::string& arguments) {
    event(fmt::format(R"("ph": "M", "name": "{}", "pid": {}, "tid": {}, "ts": 0, "args": {{{}}})", what, kProcess, thread,
                      arguments));
  }
  // All events, with commas between.
  std::string take() { return std::move(text_); }

 private:
  static std::string micro(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }
  std::string at(std::int64_t ns) const { return micro(std::max<std::int64_t>(0, ns - base_)); }

  std::int64_t base_;
  std::string text_;
  bool first_ = true;
};

}  // namespace stepscope::storage

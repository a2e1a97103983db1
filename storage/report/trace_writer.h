// Writes the events of a Chrome trace, one a line, with commas between. Process 1 is the worker. Nothing of what was written
// is kept: the trace of a long run is larger than what a report may take.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>

#include "storage/json_values.h"

namespace stepscope::storage {

class TraceWriter {
 public:
  static constexpr int kProcess = 1;
  // `base`: the time that is 0. The stream outlives the writer; its state tells whether all could be written, after flush().
  TraceWriter(std::int64_t base, std::ostream& out) : base_(base), out_(out) {}

  // Times in nanoseconds of the worker's clock; `arguments`: the members of "args".
  void complete(std::string_view category, std::string_view name, int thread, std::int64_t begin, std::int64_t ns,
                std::string_view arguments) {
    const std::int64_t at = sinceBase(begin);
    event(R"("ph": "X", "cat": "{}", "name": {}, "pid": {}, "tid": {}, "ts": {}.{:03}, "dur": {}.{:03}, "args": {{{}}})",
          category, jsonText(name), kProcess, thread, at / 1000, at % 1000, ns / 1000, ns % 1000, arguments);
  }
  // An arrow: 's' where it begins, 'f' where it ends.
  void flow(char kind, std::string_view category, std::int64_t id, int thread, std::int64_t time) {
    const std::int64_t at = sinceBase(time);
    event(R"("ph": "{}", "cat": "{}", "name": "{}", "id": {}, "pid": {}, "tid": {}, "ts": {}.{:03}{})", kind, category,
          category, id, kProcess, thread, at / 1000, at % 1000, kind == 'f' ? R"(, "bp": "e")" : "");
  }
  void counter(std::string_view name, std::string_view key, std::int64_t time, double value) {
    if (!std::isfinite(value)) return;
    const std::int64_t at = sinceBase(time);
    event(R"("ph": "C", "cat": "counter", "name": "{}", "pid": {}, "tid": 0, "ts": {}.{:03}, "args": {{"{}": {}}})", name,
          kProcess, at / 1000, at % 1000, key, value);
  }
  void metadata(std::string_view what, int thread, std::string_view arguments) {
    event(R"("ph": "M", "name": "{}", "pid": {}, "tid": {}, "ts": 0, "args": {{{}}})", what, kProcess, thread, arguments);
  }
  void flush() {
    out_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.clear();
  }

 private:
  static constexpr std::size_t kAtOnce = std::size_t{1} << 18;

  // `body`: the members of the event's object.
  template <typename... Values>
  void event(fmt::format_string<const Values&...> body, const Values&... values) {
    text_.append(std::string_view(first_ ? "\n  {" : ",\n  {"));
    first_ = false;
    fmt::format_to(std::back_inserter(text_), body, values...);
    text_.push_back('}');
    if (text_.size() > kAtOnce) flush();
  }
  std::int64_t sinceBase(std::int64_t time) const { return std::max<std::int64_t>(0, time - base_); }

  std::int64_t base_;
  std::ostream& out_;
  fmt::memory_buffer text_;
  bool first_ = true;
};

}  // namespace stepscope::storage

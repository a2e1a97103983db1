#include "storage/span_codec.h"

#include <algorithm>
#include <limits>

#include "storage/bounded.h"

namespace stepscope::storage {
namespace {

char* putNumber(char* out, std::uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<char>(value);
  return out;
}

constexpr std::uint64_t kMaxThread = 0xffff;

std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

// Wraps instead of overflowing: the bytes may be hostile.
std::int64_t add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t subtract(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool done() const { return at_ >= bytes_.size(); }
  bool number(std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (done()) return false;
      const auto byte = static_cast<std::uint8_t>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

bool fits(std::int64_t value) {
  return value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max();
}

}  // namespace

std::string encodeSpans(const snapshot::StepRecord& step) {
  constexpr std::size_t kMaxNumber = 10;
  std::string bytes(static_cast<std::size_t>(step.spans_size()) * 5 * kMaxNumber, '\0');
  char* out = bytes.data();
  Span last{0, 0, step.begin_ns(), 0, 0};
  for (const snapshot::InstructionSpan& span : step.spans()) {
    out = putNumber(out, zigzag(std::int64_t{span.instruction()} - last.instruction));
    out = putNumber(out, zigzag(std::int64_t{span.node()} - last.node));
    out = putNumber(out, zigzag(subtract(span.begin_ns(), last.beginNs)));
    out = putNumber(out, static_cast<std::uint64_t>(std::max<std::int64_t>(0, subtract(span.end_ns(), span.begin_ns()))));
    out = putNumber(out, static_cast<std::uint64_t>(std::clamp<std::int64_t>(span.thread(), 0, 0xffff)));
    last.instruction = span.instruction();
    last.node = span.node();
    last.beginNs = span.begin_ns();
  }
  bytes.resize(static_cast<std::size_t>(out - bytes.data()));
  return bytes;
}

Result<std::vector<Span>> decodeSpans(std::string_view bytes, std::int64_t stepBeginNs, std::size_t limit) {
  std::vector<Span> spans;
  Reader reader(bytes);
  Span last{0, 0, stepBeginNs, 0, 0};
  while (!reader.done()) {
    std::uint64_t instruction = 0, node = 0, begin = 0, ns = 0, thread = 0;
    if (!reader.number(instruction) || !reader.number(node) || !reader.number(begin) || !reader.number(ns) ||
        !reader.number(thread))
      return fail(ErrorCode::kCorrupt, "spans: the numbers end early; expected five per span");
    const std::int64_t position = add(last.instruction, unzigzag(instruction));
    const std::int64_t nodeId = add(last.node, unzigzag(node));
    if (!fits(position) || !fits(nodeId) || thread > kMaxThread || ns > static_cast<std::uint64_t>(kLargest))
      return fail(ErrorCode::kCorrupt,
                  "spans: a number is out of range; expected 32-bit ids, 16-bit threads and 60-bit times");
    if (spans.size() >= limit) return fail(ErrorCode::kCorrupt, "spans: too many; expected at most a million a step");
    last = {static_cast<std::int32_t>(position), static_cast<std::int32_t>(nodeId),
            bounded(add(last.beginNs, unzigzag(begin))), static_cast<std::int64_t>(ns), static_cast<std::int32_t>(thread)};
    spans.push_back(last);
  }
  return spans;
}

}  // namespace stepscope::storage

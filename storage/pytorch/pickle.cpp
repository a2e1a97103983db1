#include "storage/pytorch/pickle.h"

#include <fmt/format.h>

#include <bit>
#include <deque>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <vector>

namespace stepscope::storage {
namespace {

// Lists and dicts are filled after they were put into the memo, so values refer to each other by number, until the end.
using Ref = std::int32_t;
constexpr Ref kNone = -1;
struct Item {
  nlohmann::json scalar;
  std::vector<Ref> elements;  // of a dict key, value, key, value …
  enum class Kind { kScalar, kArray, kDict, kMark } kind = Kind::kScalar;
};

class Machine {
 public:
  Machine(std::string_view bytes, const std::string& name, std::int64_t most) : bytes_(bytes), name_(name), most_(most) {}

  Result<nlohmann::json> run() {
    if (bytes_.size() < 2 || bytes_[0] != '\x80')
      return fail(
          ErrorCode::kForeign,
          fmt::format("pickle '{}': begins with {}; expected a pickle of protocol 2 to 5", name_,
                      bytes_.empty() ? "nothing" : fmt::format("byte 0x{:02x}", static_cast<unsigned char>(bytes_[0]))));
    while (error_.empty()) {
      const int op = byte();
      if (!error_.empty() || op == '.') break;
      step(op);
    }
    if (!error_.empty()) return fail(code_, fmt::format("pickle '{}', byte {}: {}", name_, at_, error_));
    const Ref result = pop();
    if (result == kNone || !stack_.empty())
      return fail(ErrorCode::kCorrupt, fmt::format("pickle '{}': ends with other than one value", name_));
    nlohmann::json out;
    std::int64_t budget = most_;
    if (!convert(result, out, budget, 0))
      return fail(ErrorCode::kLimitExceeded,
                  fmt::format("pickle '{}': holds more than {} values, or nests deeper than {}; expected fewer", name_,
                              most_, kDeepest));
    return out;
  }

 private:
  static constexpr int kDeepest = 200;

  void wrong(std::string text, ErrorCode code = ErrorCode::kCorrupt) {
    if (error_.empty()) error_ = std::move(text), code_ = code;
  }
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) {
      wrong(fmt::format("needs {} more bytes, {} are there", count, bytes_.size() - at_));
      return {};
    }
    const std::string_view out = bytes_.substr(at_, count);
    at_ += count;
    return out;
  }
  int byte() {
    const std::string_view one = take(1);
    return one.empty() ? 0 : static_cast<unsigned char>(one[0]);
  }
  std::uint64_t number(int size) {  // little endian
    std::uint64_t out = 0;
    const std::string_view raw = take(static_cast<std::uint64_t>(size));
    for (std::size_t i = 0; i < raw.size(); ++i)
      out |= static_cast<std::uint64_t>(static_cast<unsigned char>(raw[i])) << (8 * i);
    return out;
  }
  void push(nlohmann::json value) {
    if (std::ssize(items_) == most_)
      return wrong(fmt::format("more than {} values; expected fewer", most_), ErrorCode::kLimitExceeded);
    stack_.push_back(static_cast<Ref>(items_.size()));
    items_.push_back({std::move(value), {}, Item::Kind::kScalar});
  }
  void pushKind(Item::Kind kind, std::vector<Ref> elements = {}) {
    push(nullptr);
    if (!error_.empty()) return;
    items_.back().kind = kind;
    items_.back().elements = std::move(elements);
  }
  Ref pop() {
    if (stack_.empty()) {
      wrong("takes a value where there is none");
      return kNone;
    }
    const Ref out = stack_.back();
    stack_.pop_back();
    return out;
  }
  Item& top() { return items_[static_cast<std::size_t>(stack_.back())]; }
  std::vector<Ref> popToMark() {
    std::vector<Ref> out;
    while (!stack_.empty() && top().kind != Item::Kind::kMark) out.push_back(pop());
    if (stack_.empty())
      wrong("takes values up to a mark that is not there");
    else
      stack_.pop_back();
    return {out.rbegin(), out.rend()};
  }
  void pushTuple(int count) {
    std::vector<Ref> elements(static_cast<std::size_t>(count));
    for (auto e = elements.rbegin(); e != elements.rend(); ++e) *e = pop();
    pushKind(Item::Kind::kArray, std::move(elements));
  }
  void append(std::vector<Ref> elements, Item::Kind kind) {
    if (!error_.empty()) return;
    if (stack_.empty() || top().kind != kind || (kind == Item::Kind::kDict && elements.size() % 2 != 0))
      return wrong("adds elements to what is no list or dict");
    std::vector<Ref>& to = top().elements;
    to.insert(to.end(), elements.begin(), elements.end());
  }
  void get(std::uint64_t slot) {
    const auto found = memo_.find(slot);
    if (found == memo_.end()) return wrong(fmt::format("reads memo {}, which was not written", slot));
    stack_.push_back(found->second);
  }
  void put(std::uint64_t slot) {
    if (stack_.empty()) return wrong("writes a memo of no value");
    memo_[slot] = stack_.back();
  }
  void pushLong(std::uint64_t size) {
    const std::string_view raw = take(size);
    if (raw.size() > 9 || (raw.size() == 9 && raw[8] != 0))
      return wrong("an integer of more than 64 bits; expected at most 64");
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < raw.size() && i < 8; ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(raw[i])) << (8 * i);
    if (raw.size() == 9) return push(value);  // addresses of devices have the highest bit
    if (!raw.empty() && raw.size() < 8 && (raw.back() & 0x80)) value |= ~std::uint64_t{0} << (8 * raw.size());
    push(static_cast<std::int64_t>(value));
  }

  void step(int op) {
    switch (op) {
      case 0x80:
        if (const int protocol = byte(); protocol < 2 || protocol > 5)
          wrong(fmt::format("protocol {}; expected 2 to 5", protocol), ErrorCode::kForeign);
        return;
      case 0x95: (void)number(8); return;  // length of a frame
      case 'N': return push(nullptr);
      case 0x88: return push(true);
      case 0x89: return push(false);
      case 'K': return push(static_cast<std::int64_t>(number(1)));
      case 'M': return push(static_cast<std::int64_t>(number(2)));
      case 'J': return push(static_cast<std::int64_t>(static_cast<std::int32_t>(number(4))));
      case 0x8a: return pushLong(number(1));
      case 0x8b: return pushLong(number(4));
      case 'G': return push(std::bit_cast<double>(__builtin_bswap64(number(8))));
      case 0x8c: return push(std::string(take(number(1))));
      case 'X': return push(std::string(take(number(4))));
      case 0x8d: return push(std::string(take(number(8))));
      case ']': return pushKind(Item::Kind::kArray);
      case '}': return pushKind(Item::Kind::kDict);
      case ')': return pushKind(Item::Kind::kArray);
      case '(': return pushKind(Item::Kind::kMark);
      case 't': return pushKind(Item::Kind::kArray, popToMark());
      case 'l': return pushKind(Item::Kind::kArray, popToMark());
      case 'd': return pushKind(Item::Kind::kDict, popToMark());
      case 0x85: return pushTuple(1);
      case 0x86: return pushTuple(2);
      case 0x87: return pushTuple(3);
      case 'a': {
        const Ref one = pop();
        return append({one}, Item::Kind::kArray);
      }
      case 'e': return append(popToMark(), Item::Kind::kArray);
      case 's': {
        const Ref value = pop(), key = pop();
        return append({key, value}, Item::Kind::kDict);
      }
      case 'u': return append(popToMark(), Item::Kind::kDict);
      case '0': (void)pop(); return;
      case '2':
        if (stack_.empty()) return wrong("repeats no value");
        stack_.push_back(stack_.back());
        return;
      case 0x94: return put(memo_.size());
      case 'q': return put(number(1));
      case 'r': return put(number(4));
      case 'h': return get(number(1));
      case 'j': return get(number(4));
      case 'c':
      case 0x93:
      case 'R':
      case 0x81:
      case 0x92:
      case 'b':
      case 'i':
      case 'o':
      case 'P':
      case 'Q':
      case 0x82:
      case 0x83:
      case 0x84:
        return wrong(
            "holds a Python object or function; expected dicts, lists, texts and numbers alone, as "
            "torch.cuda.memory._dump_snapshot writes",
            ErrorCode::kForeign);
      default:
        return wrong(fmt::format("opcode 0x{:02x}; expected one of dicts, lists, texts and numbers", op),
                     ErrorCode::kForeign);
    }
  }

  bool convert(Ref ref, nlohmann::json& out, std::int64_t& budget, int depth) const {
    if (--budget < 0 || depth > kDeepest) return false;
    const Item& item = items_[static_cast<std::size_t>(ref)];
    if (item.kind == Item::Kind::kDict) {
      out = nlohmann::json::object();
      for (std::size_t i = 0; i + 1 < item.elements.size(); i += 2) {
        const nlohmann::json& key = items_[static_cast<std::size_t>(item.elements[i])].scalar;
        nlohmann::json& value = out[key.is_string() ? key.get<std::string>() : key.dump()];
        if (!convert(item.elements[i + 1], value, budget, depth + 1)) return false;
      }
    } else if (item.kind == Item::Kind::kArray) {
      out = nlohmann::json::array();
      for (const Ref element : item.elements)
        if (!convert(element, out.emplace_back(), budget, depth + 1)) return false;
    } else {
      out = item.scalar;
    }
    return true;
  }

  std::string_view bytes_;
  const std::string& name_;
  const std::int64_t most_;
  std::size_t at_ = 0;
  std::deque<Item> items_;
  std::vector<Ref> stack_;
  std::unordered_map<std::uint64_t, Ref> memo_;
  std::string error_;
  ErrorCode code_ = ErrorCode::kCorrupt;
};

}  // namespace

Result<nlohmann::json> parsePickle(std::string_view bytes, const std::string& name, std::int64_t mostValues) {
  return Machine(bytes, name, mostValues).run();
}

}  // namespace stepscope::storage

#include "engine/ir/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace stepscope {
namespace {

constexpr std::string_view kPartial = "∂";
constexpr int kMostWords = 24;  // of one key; those that builds make have up to six

// Length of the UTF-8 sequence that begins at `at`; 0 when its bytes are none.
std::size_t utf8Length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : static_cast<unsigned char>(0);
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const unsigned second = byte(1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
      (first == 0xf4 && second > 0x8f))
    return 0;
  return length;
}

std::string escaped(std::string_view name) {
  std::string text;
  text.reserve(name.size());
  for (std::size_t i = 0; i < name.size();) {
    const auto byte = static_cast<unsigned char>(name[i]);
    const std::size_t length = utf8Length(name, i);
    if (byte == ' ') {
      text += "\\s";
    } else if (byte == '\\') {
      text += "\\\\";
    } else if (byte < 0x20 || byte == 0x7f || length == 0 || (i == 0 && byte == '=')) {
      text += fmt::format("\\x{:02x}", byte);
    } else {
      text.append(name, i, length);
      i += length;
      continue;
    }
    ++i;
  }
  return text;
}

// Most names are written as they are.
InternedText nameText(std::string_view name) {
  const bool plain = !name.starts_with('=') && std::all_of(name.begin(), name.end(), [](char byte) {
    return byte > ' ' && byte < 0x7f && byte != '\\';
  });
  return plain ? InternedText(name) : InternedText(escaped(name));
}

// The text of a key is its subject where it has no words.
InternedText keyText(const NodeKey& key) { return key.role == NodeRole::kForward ? key.subject : InternedText(key.text()); }
InternedText keyText(const ValueKey& key) {
  return key.kind == ValueKeyKind::kNamed ? key.subject : InternedText(key.text());
}

// What `escaped` wrote; nothing when it is not of that form. Whether it is the form that `escaped` chooses, the caller sees
// by writing the key again.
std::optional<std::string> unescaped(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      name += text[i];
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    if (text[i] == 's') {
      name += ' ';
    } else if (text[i] == '\\') {
      name += '\\';
    } else if (text[i] == 'x' && i + 2 < text.size()) {
      unsigned byte = 0;
      const char* const end = text.data() + i + 3;
      const auto [stop, error] = std::from_chars(text.data() + i + 1, end, byte, 16);
      if (error != std::errc() || stop != end) return std::nullopt;
      name += static_cast<char>(byte);
      i += 2;
    } else {
      return std::nullopt;
    }
  }
  if (name.empty()) return std::nullopt;
  return name;
}

std::optional<int> number(std::string_view text, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > most) return std::nullopt;
  return value;
}

constexpr int kMostInputs = 32767, kMostOrdinals = 2147483647;

// "12.3" → 12 and 3; "12" → 12 and 0.
std::optional<std::pair<int, int>> numbers(std::string_view text) {
  const auto dot = text.find('.');
  const auto first = number(text.substr(0, dot), kMostInputs);
  const auto second = dot == std::string_view::npos ? std::optional<int>(0) : number(text.substr(dot + 1), kMostOrdinals);
  if (!first || !second) return std::nullopt;
  return std::pair{*first, *second};
}

// The text before the last space, and what follows it.
struct Split {
  std::string_view rest, word;
};
Split lastWord(std::string_view text) {
  const auto space = text.rfind(' ');
  if (space == std::string_view::npos) return {{}, text};
  return {text.substr(0, space), text.substr(space + 1)};
}

// "update:accumulate" → "accumulate" for head "update:".
std::optional<std::string> detailAfter(std::string_view word, std::string_view head) {
  return word.starts_with(head) ? unescaped(word.substr(head.size())) : std::nullopt;
}

std::optional<NodeKey> readNode(std::string_view text);
std::optional<ValueKey> readValue(std::string_view text);

std::optional<NodeKey> readNode(std::string_view text) {
  const auto [rest, word] = lastWord(text);
  if (rest.empty()) {
    const bool root = word.starts_with('=');
    const auto name = unescaped(root ? word.substr(1) : word);
    if (!name) return std::nullopt;
    return root ? NodeKey::root(*name) : NodeKey::forward(*name);
  }
  if (word.starts_with('#')) {
    const auto ordinal = number(word.substr(1), kMostOrdinals);
    auto root = rest.starts_with('=') ? readNode(rest) : std::nullopt;
    if (!ordinal || !root || root->role != NodeRole::kRoot) return std::nullopt;
    root->ordinal = *ordinal;
    return root;
  }
  if (word == "again") {
    const auto original = readNode(rest);
    return original ? std::optional(NodeKey::recomputed(*original)) : std::nullopt;
  }
  if (word == "update" || word.starts_with("update:")) {
    const auto part = word == "update" ? std::optional<std::string>("") : detailAfter(word, "update:");
    const auto parameter = rest.find(' ') == std::string_view::npos ? unescaped(rest) : std::nullopt;
    return part && parameter ? std::optional(NodeKey::update(*parameter, *part)) : std::nullopt;
  }
  if (word == "grad" || word.starts_with("grad:")) {
    const auto merged = word == "grad" ? std::optional<std::string>("") : detailAfter(word, "grad:");
    const auto value = readValue(rest);
    return merged && value ? std::optional(NodeKey::valueGradient(*value, *merged)) : std::nullopt;
  }
  if (word.starts_with(kPartial)) {
    const auto place = numbers(word.substr(kPartial.size()));
    const auto [before, as] = lastWord(rest);
    const bool changed = !before.empty() && as.starts_with("as:");
    const auto op = changed ? detailAfter(as, "as:") : std::optional<std::string>("");
    const auto forward = readNode(changed ? before : rest);
    if (!place || !op || !forward) return std::nullopt;
    return NodeKey::gradient(*forward, place->first, place->second, *op);
  }
  if (word.starts_with("by:")) {
    const auto dot = word.rfind('.');
    const auto ordinal = dot == std::string_view::npos ? std::nullopt : number(word.substr(dot + 1), kMostOrdinals);
    const auto pass = ordinal ? detailAfter(word.substr(0, dot), "by:") : std::nullopt;
    const auto beside = pass ? readNode(rest) : std::nullopt;
    return beside ? std::optional(NodeKey::madeByPass(*beside, *pass, *ordinal)) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<ValueKey> readValue(std::string_view text) {
  const auto [rest, word] = lastWord(text);
  if (rest.empty()) {
    const auto name = unescaped(word);
    return name ? std::optional(ValueKey::named(*name)) : std::nullopt;
  }
  if (word.starts_with(':')) {
    const auto output = number(word.substr(1), kMostOrdinals);
    const auto node = output ? readNode(rest) : std::nullopt;
    return node ? std::optional(ValueKey::of(*node, *output)) : std::nullopt;
  }
  const auto value = readValue(rest);
  if (!value) return std::nullopt;
  if (word == "next") return ValueKey::next(*value);
  if (word == "again") return ValueKey::recomputed(*value);
  if (word == "grad") return ValueKey::gradient(*value);
  const auto merged = detailAfter(word, "grad:");
  return merged ? std::optional(ValueKey::gradient(*value, *merged)) : std::nullopt;
}

// `read` goes as deep as the text has words, and takes some forms that text() does not write.
template <typename Key>
Result<Key> parsed(std::string_view text, std::optional<Key> (*read)(std::string_view), std::string_view what,
                   std::string_view example) {
  if (std::count(text.begin(), text.end(), ' ') <= kMostWords)
    if (const auto key = read(text); key && key->text() == text) return *key;
  constexpr std::size_t kShown = 200;
  return invalid(fmt::format("{} key '{}'{}: not of the form of one; expected a name and words such as {}", what,
                             escaped(text.substr(0, kShown)), text.size() > kShown ? " …" : "", example));
}

}  // namespace

NodeKey NodeKey::forward(std::string_view nodeName) { return {.subject = nameText(nodeName), .role = NodeRole::kForward}; }
NodeKey NodeKey::root(std::string_view name, int ordinal) {
  return {.subject = nameText(name), .ordinal = ordinal, .role = NodeRole::kRoot};
}
NodeKey NodeKey::gradient(const NodeKey& forward, int input, int ordinal, std::string_view as) {
  return {.subject = keyText(forward),
          .detail = nameText(as),
          .ordinal = ordinal,
          .input = static_cast<std::int16_t>(input),
          .role = NodeRole::kGradient};
}
NodeKey NodeKey::valueGradient(const ValueKey& value, std::string_view merged) {
  return {.subject = keyText(value), .detail = nameText(merged), .role = NodeRole::kValueGradient};
}
NodeKey NodeKey::recomputed(const NodeKey& original) {
  return {.subject = keyText(original), .role = NodeRole::kRecomputed};
}
NodeKey NodeKey::update(std::string_view parameter, std::string_view part) {
  return {.subject = nameText(parameter), .detail = nameText(part), .role = NodeRole::kUpdate};
}
NodeKey NodeKey::madeByPass(const NodeKey& beside, std::string_view pass, int ordinal) {
  return {.subject = keyText(beside), .detail = nameText(pass), .ordinal = ordinal, .role = NodeRole::kPass};
}

std::string NodeKey::text() const {
  const std::string_view of = subject.view(), more = detail.view();
  switch (role) {
    case NodeRole::kNone: return {};
    case NodeRole::kForward: return std::string(of);
    case NodeRole::kRoot: return ordinal == 0 ? fmt::format("={}", of) : fmt::format("={} #{}", of, ordinal);
    case NodeRole::kGradient: {
      std::string text(of);
      if (!more.empty()) text += fmt::format(" as:{}", more);
      text += fmt::format(" {}{}", kPartial, input);
      return ordinal == 0 ? text : fmt::format("{}.{}", text, ordinal);
    }
    case NodeRole::kValueGradient: return more.empty() ? fmt::format("{} grad", of) : fmt::format("{} grad:{}", of, more);
    case NodeRole::kRecomputed: return fmt::format("{} again", of);
    case NodeRole::kUpdate: return more.empty() ? fmt::format("{} update", of) : fmt::format("{} update:{}", of, more);
    case NodeRole::kPass: return fmt::format("{} by:{}.{}", of, more, ordinal);
  }
  return {};
}

Result<NodeKey> NodeKey::parse(std::string_view text) {
  return parsed<NodeKey>(text, readNode, "node", "'h.0/MatMul', 'h.0/MatMul ∂1', 'h.0/MatMul again' or 'w update'");
}

ValueKey ValueKey::named(std::string_view name) { return {.subject = nameText(name), .kind = ValueKeyKind::kNamed}; }
ValueKey ValueKey::gradient(const ValueKey& value, std::string_view merged) {
  return {.subject = keyText(value), .detail = nameText(merged), .kind = ValueKeyKind::kGradient};
}
ValueKey ValueKey::next(const ValueKey& state) { return {.subject = keyText(state), .kind = ValueKeyKind::kNext}; }
ValueKey ValueKey::recomputed(const ValueKey& original) {
  return {.subject = keyText(original), .kind = ValueKeyKind::kRecomputed};
}
ValueKey ValueKey::of(const NodeKey& node, int output) {
  return {.subject = keyText(node), .output = output, .kind = ValueKeyKind::kOutput};
}

std::string ValueKey::text() const {
  const std::string_view of = subject.view(), more = detail.view();
  switch (kind) {
    case ValueKeyKind::kNone: return {};
    case ValueKeyKind::kNamed: return std::string(of);
    case ValueKeyKind::kGradient: return more.empty() ? fmt::format("{} grad", of) : fmt::format("{} grad:{}", of, more);
    case ValueKeyKind::kNext: return fmt::format("{} next", of);
    case ValueKeyKind::kRecomputed: return fmt::format("{} again", of);
    case ValueKeyKind::kOutput: return fmt::format("{} :{}", of, output);
  }
  return {};
}

Result<ValueKey> ValueKey::parse(std::string_view text) {
  return parsed<ValueKey>(text, readValue, "value", "'h.0/x', 'w grad', 'w next' or 'h.0/MatMul ∂1 :0'");
}

}  // namespace stepscope

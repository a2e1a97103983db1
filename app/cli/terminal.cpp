#include "app/cli/terminal.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "storage/json_values.h"

namespace stepscope::cli {
namespace {

int outputError = 0;  // errno of the first write to stdout that failed
bool json = false;
std::string prefix;  // of what goes to stderr
bool ended = false;  // the last event was "done" or "error"

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 0;  // 0: not UTF-8
};

CodePoint decode(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
  char32_t value = first & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3fu);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  return value < kSmallest[bytes] || value > 0x10ffff || surrogate ? CodePoint{} : CodePoint{value, bytes};
}

// Changes how what is beside it is shown, or is not shown itself.
bool isHidden(char32_t c) {
  return (c >= 0x80 && c < 0xa0) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
         (c >= 0xe0000 && c <= 0xe007f);
}

void write(std::FILE* stream, std::string_view text, int* failed) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stream) == text.size() && std::fflush(stream) == 0;
  if (!written && failed && *failed == 0) *failed = errno ? errno : EIO;
}

}  // namespace

std::string visible(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto [value, bytes] = decode(text);
    if (bytes == 0 || value < 0x20 || value == 0x7f) {
      const char c = text[0];
      out += c == '\n'   ? "\\n"
             : c == '\r' ? "\\r"
             : c == '\t' ? "\\t"
                         : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else if (isHidden(value)) {
      out += fmt::format("\\u{{{:04x}}}", static_cast<std::uint32_t>(value));
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return out;
}

namespace terminal {

void writeOut(std::string_view text) { write(stdout, text, &outputError); }
void writeError(std::string_view text) {
  std::fflush(stdout);
  write(stderr, prefix + std::string(text), nullptr);  // there is no place left to say that it failed
}

}  // namespace terminal

void speakAs(std::string words) { prefix = std::move(words); }

void speakJson() { json = true; }

void endJson(int exitCode) {
  if (!json || ended) return;
  nlohmann::json done{{"event", "done"}};
  if (exitCode != kSuccess) done["exit_code"] = exitCode;
  sayJson(done);
}

void sayJson(nlohmann::json object) {
  storage::spellNumbers(object);
  const auto event = object.is_object() ? object.find("event") : object.end();
  ended = object.is_object() && event != object.end() && (*event == "done" || *event == "error");
  terminal::writeOut(object.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n");
}

int tellError(std::string_view message) {
  if (json) sayJson({{"event", "error"}, {"message", message}});
  std::string text = "error: ";
  for (std::size_t begin = 0; begin <= message.size();) {
    const std::size_t end = std::min(message.find('\n', begin), message.size());
    std::string_view line = message.substr(begin, end - begin);
    if (begin > 0) {
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      text += "  ";
    }
    text += visible(line) + "\n";
    begin = end + 1;
  }
  terminal::writeError(text);
  return kFailed;
}

void tellWarning(std::string_view code, std::string_view message) {
  if (json) sayJson({{"event", "warning"}, {"code", code}, {"message", message}});
  terminal::writeError("warning: " + visible(message) + "\n");
}

bool outputIsRead() { return outputError != EPIPE; }

std::string outputFailure() {
  if (std::fflush(stdout) != 0 && outputError == 0) outputError = errno ? errno : EIO;
  return outputError == 0 ? "" : std::strerror(outputError);
}

}  // namespace stepscope::cli

#include "engine/build/build_cache.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>

#include "engine/build/sha256.h"

namespace stepscope {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "stepscope-cache 1\n";
constexpr std::string_view kEnding = ".cache";

std::int64_t nowSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

struct Entry {
  std::int64_t written = 0;
  CacheQuestion question;
  std::string answer;
};

std::string field(std::string_view name, std::string_view content) {
  return fmt::format("{} {}\n{}\n", name, content.size(), content);
}

std::string textOf(const CacheQuestion& question) {
  std::string text = field("kind", question.kind);
  for (const auto& [name, content] : question.parts) text += field(name, content);
  return text;
}

// Takes "NAME BYTES\nCONTENT\n" off the front.
std::optional<std::pair<std::string, std::string>> takeField(std::string_view& text) {
  const auto line = text.find('\n'), blank = text.substr(0, line).rfind(' ');
  if (blank == std::string_view::npos || line == std::string_view::npos) return std::nullopt;
  std::size_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data() + blank + 1, text.data() + line, bytes);
  if (error != std::errc() || end != text.data() + line || bytes >= text.size() - line - 1) return std::nullopt;
  if (text[line + 1 + bytes] != '\n') return std::nullopt;
  std::pair<std::string, std::string> found{text.substr(0, blank), text.substr(line + 1, bytes)};
  text.remove_prefix(line + 1 + bytes + 1);
  return found;
}

std::string written(const Entry& entry) {
  const std::string body =
      field("written", std::to_string(entry.written)) + textOf(entry.question) + field("answer", entry.answer);
  return std::string(kFormat) + field("sha256", sha256(body)) + body;
}

// Empty: `why` says what is wrong with it.
std::optional<Entry> readEntry(const fs::path& file, std::int64_t most, std::string& why) {
  // Another process may take it away at any time; what is open stays.
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  const auto size = static_cast<std::int64_t>(in.tellg());
  if (!in || size < 0) {
    why = "it cannot be read, or has just been given up";
    return std::nullopt;
  }
  if (size > most) {
    why = fmt::format("it is damaged: {} bytes", size);
    return std::nullopt;
  }
  std::string all(static_cast<std::size_t>(size), '\0');
  in.seekg(0);
  in.read(all.data(), size);
  std::string_view text = all;
  if (!text.starts_with(kFormat)) {
    why = "it is damaged, or of another version: it does not begin as an entry does";
    return std::nullopt;
  }
  text.remove_prefix(kFormat.size());
  const auto hash = takeField(text);
  if (!hash || hash->first != "sha256" || hash->second != sha256(text)) {
    why = "it is damaged: its hash is not that of its contents";
    return std::nullopt;
  }
  Entry entry;
  why = "it is damaged: a field is missing";
  const auto time = takeField(text), kind = takeField(text);
  if (!time || !kind || time->first != "written" || kind->first != "kind") return std::nullopt;
  std::from_chars(time->second.data(), time->second.data() + time->second.size(), entry.written);
  entry.question.kind = kind->second;
  while (auto part = takeField(text)) {
    if (part->first == "answer") {
      entry.answer = std::move(part->second);
      return text.empty() ? std::optional(std::move(entry)) : std::nullopt;
    }
    entry.question.parts.push_back(std::move(*part));
  }
  return std::nullopt;
}

struct EntryFile {
  fs::path path;
  fs::file_time_type used;  // as it was when the folder was read: others use and take away entries meanwhile
};

// Entries of the folder, the newest first; `kind`: empty = all.
std::vector<EntryFile> entriesOf(const fs::path& folder, std::string_view kind) {
  std::vector<EntryFile> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.ends_with(kEnding) || !name.starts_with(kind)) continue;
    std::error_code gone;
    const auto used = fs::last_write_time(it->path(), gone);
    if (!gone) found.push_back({it->path(), used});
  }
  std::ranges::sort(found, std::greater{}, &EntryFile::used);
  return found;
}

bool isShort(std::string_view content) { return content.size() <= 80 && content.find('\n') == std::string_view::npos; }

std::string whatDiffers(const CacheQuestion& asked, const CacheQuestion& there) {
  for (const auto& [name, content] : asked.parts) {
    const auto other = std::ranges::find(there.parts, name, &std::pair<std::string, std::string>::first);
    if (other == there.parts.end()) return fmt::format("the newest entry has no {}", name);
    if (other->second == content) continue;
    if (isShort(content) && isShort(other->second) && content.size() != 64)  // 64: a hash
      return fmt::format("{} is '{}', and '{}' in the newest entry", name, content, other->second);
    return fmt::format("not the {} of the newest entry", name);
  }
  return "the newest entry has more parts";
}

std::string ageText(std::int64_t seconds) {
  if (seconds < 120) return fmt::format("{} s", std::max<std::int64_t>(seconds, 0));
  if (seconds < 7200) return fmt::format("{} minutes", seconds / 60);
  return seconds < 172'800 ? fmt::format("{} hours", seconds / 3600) : fmt::format("{} days", seconds / 86'400);
}

}  // namespace

fs::path BuildCache::fileOf(const CacheQuestion& question) const {
  return folder_ / fmt::format("{}-{}{}", question.kind, sha256(textOf(question)).substr(0, 32), kEnding);
}

CacheFound BuildCache::find(const CacheQuestion& question) const {
  if (!on()) return {std::nullopt, "miss: cache.dir is off"};
  const fs::path file = fileOf(question);
  std::error_code error;
  std::string why;
  if (fs::exists(file, error)) {
    auto entry = readEntry(file, limit_, why);
    if (!entry) return {std::nullopt, fmt::format("miss: there is an entry, and {}", why)};
    const std::int64_t age = nowSeconds() - entry->written;
    if (textOf(entry->question) != textOf(question)) return {std::nullopt, "miss: the entry answers another question"};
    if (question.mostSeconds > 0 && (age > question.mostSeconds || age < 0))
      return {std::nullopt,
              fmt::format("miss: the entry is {} old; expected at most {}", ageText(age), ageText(question.mostSeconds))};
    fs::last_write_time(file, fs::file_time_type::clock::now(), error);  // it was used; a read-only folder may refuse
    std::string same;
    for (const auto& [name, content] : question.parts) same += (same.empty() ? "same " : ", ") + name;
    return {std::move(entry->answer), fmt::format("hit: {}; found {} ago", same, ageText(age))};
  }
  for (const EntryFile& other : entriesOf(folder_, question.kind + "-"))
    if (const auto entry = readEntry(other.path, limit_, why))
      return {std::nullopt, "miss: " + whatDiffers(question, entry->question)};
  return {std::nullopt, "miss: no entry yet"};
}

Status BuildCache::keep(const CacheQuestion& question, std::string_view answer) const {
  if (!on()) return {};
  const fs::path file = fileOf(question);
  const std::string text = written({nowSeconds(), question, std::string(answer)});
  const auto failed = [&](const std::string& what) {
    return fail(ErrorCode::kIo, fmt::format("cache.dir: {} '{}'; the build goes on without", what, file.string()));
  };
  if (static_cast<std::int64_t>(text.size()) > limit_) return failed("too large is");
  std::error_code error;
  if (fs::create_directories(folder_, error)) fs::permissions(folder_, fs::perms::owner_all, error);
  static std::atomic<int> count = 0;
  const fs::path beside = folder_ / fmt::format("{}.{}.{}.part", file.filename().string(), getpid(), count++);
  {
    std::ofstream out(beside, std::ios::binary | std::ios::trunc);
    out << text;
    out.close();
    if (!out) {
      fs::remove(beside, error);
      return failed("cannot write");
    }
  }
  fs::rename(beside, file, error);
  if (error) {
    std::error_code ignored;
    fs::remove(beside, ignored);
    return failed("cannot write");
  }
  makeRoom();
  return {};
}

void BuildCache::makeRoom() const {
  std::int64_t bytes = 0;
  std::error_code error;
  for (const EntryFile& entry : entriesOf(folder_, "")) {
    const auto size = fs::file_size(entry.path, error);
    bytes += error ? 0 : static_cast<std::int64_t>(size);
    if (bytes > limit_) fs::remove(entry.path, error);
  }
}

fs::path userCacheFolder() {
  const char* const given = std::getenv("XDG_CACHE_HOME");
  if (given && *given == '/') return fs::path(given) / "stepscope";
  const char* const home = std::getenv("HOME");
  return home && *home == '/' ? fs::path(home) / ".cache" / "stepscope" : fs::path();
}

const std::string& engineBuild() {
  static const std::string text = [] {
    Dl_info info{};
    std::error_code error;
    fs::path file = "/proc/self/exe";
    // Of the program itself the name is what it was called by.
    if (dladdr(reinterpret_cast<const void*>(&userCacheFolder), &info) != 0 && info.dli_fname && *info.dli_fname == '/')
      file = info.dli_fname;
    const auto size = fs::file_size(file, error);
    const auto time = fs::last_write_time(file, error).time_since_epoch().count();
    return fmt::format("{} bytes of {}", size, time);
  }();
  return text;
}

}  // namespace stepscope

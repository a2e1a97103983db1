// The only way from `stepscope` to a terminal. Names from files are hostile text: an escape sequence in one could clear the
// screen or forge a line. So every string that is printed is escaped, unless the caller says that it is ready.
//
// Writing never fails with an exception. What could not be written to stdout is remembered, for the exit code.
// Thread: one thread prints at a time.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "engine/snapshot/units.h"

namespace stepscope::cli {

// Control characters (also those of C1 and DEL), characters that change the direction of text or are not seen, line and
// paragraph separators as \xNN or \u{NNNN}, newline, return and tab as \n, \r, \t; bytes that are no UTF-8 as \xNN.
std::string visible(std::string_view text);

// Text that is made of escaped parts already, such as a table; the caller answers for it.
struct Ready {
  std::string text;
};

namespace terminal {

template <typename T>
constexpr bool kIsText = std::is_convertible_v<const T&, std::string_view>;
template <typename T>
using Shown = std::conditional_t<kIsText<T> || std::is_same_v<T, Ready>, std::string, T>;

template <typename T>
decltype(auto) shown(const T& value) {
  if constexpr (std::is_same_v<T, Ready>)
    return (value.text);
  else if constexpr (kIsText<T>)
    return visible(value);
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(units::signless(value));
  else
    return (value);
}

void writeOut(std::string_view text);
void writeError(std::string_view text);

}  // namespace terminal

// To stdout, and to stderr; the format ends with its own newline.
template <typename... Values>
void say(fmt::format_string<terminal::Shown<Values>...> format, const Values&... values) {
  terminal::writeOut(fmt::format(fmt::runtime(fmt::string_view(format)), terminal::shown(values)...));
}
template <typename... Values>
void tell(fmt::format_string<terminal::Shown<Values>...> format, const Values&... values) {
  terminal::writeError(fmt::format(fmt::runtime(fmt::string_view(format)), terminal::shown(values)...));
}

// From now on all that goes to stderr begins with this: which of several processes says it.
void speakAs(std::string prefix);

// From now on errors are events on stdout as well: a program reads one stream, in which every answer ends with "done" or
// "error".
void speakJson();
// The end of a command that returned this exit code: says "done" unless the last event was "done" or "error".
void endJson(int exitCode);

// One line of JSON in ASCII. NaN and infinities, which JSON lacks, become the strings "NaN", "Infinity" and "-Infinity".
void sayJson(nlohmann::json json);

// "error: <message>" to stderr. The lines of a message that has several follow indented, so that none looks like another
// error. With speakJson() also {"event":"error","message":…}. Returns kFailed.
int tellError(std::string_view message);

// "warning: <message>" to stderr; with speakJson() also {"event":"warning","code":…,"message":…}, `code` being a word for
// programs.
void tellWarning(std::string_view code, std::string_view message);

// Flushes stdout. Empty when everything that was said has been written; otherwise why it was not.
std::string outputFailure();
// False when a pipe was closed at its other end. Known only after something was said, and with SIGPIPE ignored.
bool outputIsRead();

}  // namespace stepscope::cli

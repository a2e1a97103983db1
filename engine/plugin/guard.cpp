#include "engine/plugin/guard.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <vector>

namespace stepscope {
namespace {

constexpr std::array kSignals{SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
thread_local const char* current = nullptr;
std::array<struct sigaction, kSignals.size()> before;
int endsWith = 0;
bool tellsJson = false;

// Calls nothing that is not safe in a signal handler.
void write(int stream, const char* text) {
  if (::write(stream, text, std::strlen(text)) < 0) return;
}
// The same without what JSON would have to escape.
void writePlain(int stream, const char* text) {
  for (; *text != '\0'; ++text)
    if (*text != '"' && *text != '\\' && static_cast<unsigned char>(*text) >= ' ' && ::write(stream, text, 1) < 0) return;
}

const char* nameOf(int number) {
  switch (number) {
    case SIGSEGV: return "SIGSEGV";
    case SIGABRT: return "SIGABRT";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    default: return "SIGILL";
  }
}

void tell(int number) {
  if (current) {
    write(STDERR_FILENO, "error: ");
    write(STDERR_FILENO, current);
    write(STDERR_FILENO, ": crashed (");
    write(STDERR_FILENO, nameOf(number));
    write(STDERR_FILENO, "); expected that it returns\n");
    if (tellsJson) {
      write(STDOUT_FILENO, "{\"event\":\"error\",\"message\":\"");
      writePlain(STDOUT_FILENO, current);
      write(STDOUT_FILENO, ": crashed (");
      write(STDOUT_FILENO, nameOf(number));
      write(STDOUT_FILENO, "); expected that it returns\"}\n");
    }
    if (endsWith != 0) _exit(endsWith);
  }
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before[i], nullptr);
  raise(number);  // delivered when this returns
}

}  // namespace

PluginCall::PluginCall(const std::string& label) : before_(current) { current = label.c_str(); }
PluginCall::~PluginCall() { current = before_; }

void tellPluginCrashes(int exitCode, bool json) {
  endsWith = exitCode;
  tellsJson = json;
  static bool installed = false;
  if (installed) return;
  installed = true;
  // A stack that overflows leaves no room for the handler.
  static std::vector<char> stack(std::size_t{1} << 16);
  const stack_t room{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  sigaltstack(&room, nullptr);
  struct sigaction action = {};
  action.sa_handler = tell;
  action.sa_flags = SA_ONSTACK;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &before[i]);
}

tl::unexpected<Error> againstContract(const std::string& label, const std::string& found, const std::string& expected) {
  return fail(ErrorCode::kCorrupt, label + ": " + found + "; " + expected);
}

}  // namespace stepscope

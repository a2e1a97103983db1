// The border to a shared library: what comes out of its functions is a Status that names plugin and function, whatever
// happens there.
#pragma once

#include <exception>
#include <string>

#include "kernels/status.h"

namespace stepscope {

// While it lives, the calling thread is in the function of a plugin that `label` names: "plugin 'acme': run of kernel
// 'acme.Gate'". The label outlives it. Calls nest: a pass that asks for a type may get into a shape rule.
class PluginCall {
 public:
  explicit PluginCall(const std::string& label);
  ~PluginCall();
  PluginCall(const PluginCall&) = delete;
  PluginCall& operator=(const PluginCall&) = delete;

 private:
  const char* before_;
};

// From here on a signal that ends the process (SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL) inside a function of a plugin is
// told on stderr, as an error that names both. `exitCode`: the process ends with it; 0: the signal takes its course, so that
// who waits for the process sees it. `json`: also as an event on stdout. For the whole process; the last call counts.
void tellPluginCrashes(int exitCode, bool json = false);

// What a plugin did against the contract of its ABI (kCorrupt). `label` as above.
tl::unexpected<Error> againstContract(const std::string& label, const std::string& found, const std::string& expected);

// Calls `call`, which returns a Status. Errors: those it returns, and kCorrupt for an exception.
template <typename Call>
Status guarded(const std::string& label, Call&& call) {
  const PluginCall here(label);
  constexpr auto kExpected = "expected that no exception leaves a function of a plugin";
  try {
    return call();
  } catch (const std::exception& error) {
    return againstContract(label, std::string("threw '") + error.what() + "'", kExpected);
  } catch (...) {
    return againstContract(label, "threw an exception", kExpected);
  }
}

}  // namespace stepscope

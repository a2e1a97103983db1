// What `stepscope plugin check` finds out about the ops of a plugin, on the examples that the plugin gives.
//
// Per example: the shape rule with symbols in place of extents; one run between red zones (red_zones.h); the gradient next
// to central differences; every output over an input whose memory it may take; one, two and three threads; the kernel for
// "cuda" on the emulator, where the op has one; time next to the bytes that the operands have.
#pragma once

#include <string>
#include <vector>

#include "engine/plugin/plugin_registry.h"

namespace stepscope {

struct PluginFinding {
  enum class Verdict { kPassed, kFailed, kTold };  // kTold: a figure, nothing to pass
  std::string op;                                  // "acme.Gate"
  int example = 0;
  std::string check;  // "shapes", "run", "gradient", "aliasing", "threads", "device", "speed"
  Verdict verdict = Verdict::kPassed;
  std::string detail;  // what was found, and what was expected
};

// All checks of all ops of the plugins of `wish`. Contents are drawn from `seed`. Errors: those of registryWith().
Result<std::vector<PluginFinding>> checkPlugins(PluginWish wish, std::uint64_t seed = 1);

std::string_view verdictName(PluginFinding::Verdict verdict);  // "passed", "failed", "told"

}  // namespace stepscope

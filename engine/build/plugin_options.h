// `plugin`, `plugin.path` and `plugin.check` (engine/plugin/plugin_registry.h): their defaults are what a session was opened
// with, and stay.
#pragma once

#include <vector>

#include "engine/build/options.h"

namespace stepscope {

// Those of a registry without plugins.
std::vector<OptionInfo> pluginOptions();

}  // namespace stepscope

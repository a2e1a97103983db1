#include "engine/build/plugin_options.h"

namespace stepscope {

std::vector<OptionInfo> pluginOptions() {
  constexpr std::string_view kGroup = "Plugins";
  return {
      {"plugin",
       "",
       "shared libraries with ops, kernels, passes and options: FILE, or FILE:FILE…; before a model is opened",
       {},
       kGroup,
       "text"},
      {"plugin.path",
       "",
       "folders in which plugins are looked for that are named without a slash: FOLDER:FOLDER…",
       {},
       kGroup,
       "text"},
      {"plugin.check",
       "off",
       "kernels of plugins work on copies of their operands; what they write beside them ends the step with an error",
       {"on", "off"},
       kGroup,
       "switch"},
  };
}

}  // namespace stepscope

// The files that `stepscope plugin new` writes: plugins/samples/my_op and the header of the ABI, as they were when the
// program was built.
#pragma once

#include <string_view>

namespace stepscope::cli {

// "my_op" stands where the name of the plugin belongs.
std::string_view templateSource();
std::string_view templateMakefile();
std::string_view pluginHeader();  // plugins/abi/stepscope_plugin.h

}  // namespace stepscope::cli

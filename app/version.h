// The version of both programs.
#pragma once

namespace stepscope {

// "0.1.0 (1067d24)": of the project, and the commit it was built from, with a + where the tree held more than that; without
// one outside a repository. Lives as long as the program.
const char* versionText();

}  // namespace stepscope

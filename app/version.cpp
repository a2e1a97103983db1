#include "app/version.h"

#include "commit.h"

namespace stepscope {

const char* versionText() { return SS_COMMIT[0] ? SS_VERSION " (" SS_COMMIT ")" : SS_VERSION; }

}  // namespace stepscope

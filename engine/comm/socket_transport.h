// Ranks of one machine, over Unix sockets that were made before they began: no port, no file, no library. The kernel closes
// the sockets of a process that dies, however it does, so that the others know at once.
#pragma once

#include <memory>
#include <vector>

#include "engine/comm/transport.h"

namespace stepscope {

// `sockets[r]` is connected to rank r; that of the own rank is -1. They are owned, and closed at the end.
std::unique_ptr<Transport> makeSocketTransport(int rank, std::vector<int> sockets);

}  // namespace stepscope

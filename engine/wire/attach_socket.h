// The Unix socket over which a window reaches the loop of a running program: its place, both ends, and the first byte.
//
// $XDG_RUNTIME_DIR/stepscope/PID.sock, or /tmp/stepscope-UID/PID.sock: a folder of this user alone. No port is ever opened.
// Who is let in is sent one byte, kLetIn, and then the worker protocol begins; others are sent a text, and then the end.
#pragma once

#include <filesystem>
#include <string>

#include "kernels/status.h"

namespace stepscope {

inline constexpr char kLetIn = '+';

// Where a script of that process listens, unless it named another place.
std::filesystem::path attachSocketOf(int pid);

// Listens there. A socket that nobody listens at any more is replaced. Errors: the folder is somebody else's or open to
// others, another program listens there, the path is too long.
Result<int> listenForWindows(const std::filesystem::path& path);

// `target`: a number of a process, or a path. The connection after kLetIn. Errors: no such process; a process without a
// socket, with what to call there; the text that came in the place of kLetIn.
Result<int> connectToScript(const std::string& target);

// Bytes from `in` to the connection and from it to `out` until the connection ends; the end of `in` is handed on. True: the
// end of `in` came first.
bool relayBetween(int in, int out, int connection);

}  // namespace stepscope

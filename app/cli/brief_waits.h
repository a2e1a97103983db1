// Threads that wait for work go to sleep soon.
#pragma once

namespace stepscope::cli {

// For commands that compute; called first thing in main. The OpenMP library lets a waiting thread spin for about 20 ms, and
// reads how long when it is loaded, before main. Where every processor is busy, a thread that spins keeps the one that it
// waits for from running. So the program sets GOMP_SPINCOUNT to about 0.1 ms and begins again, once. A user's own
// GOMP_SPINCOUNT or OMP_WAIT_POLICY stays; when the program cannot be started again, it goes on as it is.
void useBriefWaits(int argc, char** argv);

}  // namespace stepscope::cli

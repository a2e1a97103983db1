// A residual chain, a stack of blocks x + tanh(x · w): as deep as it has nodes.
#pragma once

#include <filesystem>

namespace stepscope {

// Three nodes a block; the step graph of 9,100 blocks has about 100,000.
void writeChain(const std::filesystem::path& path, int blocks);

}  // namespace stepscope

// Ranges for NVIDIA's tools, told to a stand-in for one.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;

std::string logOfTool() {
  void* const tool = dlopen(SS_NVTX_TOOL, RTLD_NOW | RTLD_NOLOAD);
  const auto log = tool ? reinterpret_cast<const char* (*)()>(dlsym(tool, "nvtxToolLog")) : nullptr;
  return log ? log() : "";
}

// One process, one tool: what comes before it is loaded is tested first.
TEST(Nvtx, RangesNestFromTheRunToTheNode) {
  unsetenv("NVTX_INJECTION64_PATH");
  {
    auto session = openSession(testing::digits(), {{"record.nvtx", "on"}});
    ASSERT_TRUE(session && session->step() && session->step());
    const auto alerts = session->alerts();
    EXPECT_EQ(std::ranges::count_if(alerts, [](const auto& alert) { return alert.code() == "nvtx"; }), 1);
  }
  setenv("NVTX_INJECTION64_PATH", SS_NVTX_TOOL, 1);
  {
    auto session = openSession(testing::digits(), {});
    ASSERT_TRUE(session && session->step());
    EXPECT_EQ(logOfTool(), "") << "off by default";
  }
  {
    auto session = openSession(testing::digits(), {{"record.nvtx", "on"}});
    ASSERT_TRUE(session && session->step() && session->step());
  }
  std::vector<std::string> lines;
  std::istringstream text(logOfTool());
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  ASSERT_GT(lines.size(), 20u);
  EXPECT_EQ(lines[0], "domain stepscope");
  EXPECT_EQ(lines[1], "begin run");
  EXPECT_EQ(lines[2], "step 0");
  EXPECT_EQ(lines[3], "  forward");
  EXPECT_EQ(lines.back(), "end 17") << "what was pushed was not popped, or the run did not end";
  EXPECT_EQ(std::ranges::count(lines, "step 1"), 1);
  std::set<std::string> phases;
  int nodes = 0;
  for (const std::string& line : lines) {
    const std::size_t depth = line.find_first_not_of(' ') / 2;
    if (depth == 1) phases.insert(line.substr(2));
    nodes += depth >= 2 && line.find('\'') != std::string::npos ? 1 : 0;
    EXPECT_LE(depth, 3u) << line;
  }
  EXPECT_EQ(phases, (std::set<std::string>{"forward", "backward", "optimizer"}));
  EXPECT_GT(nodes, 20);
  // Nodes of a module lie in its range, which lies in that of the phase.
  const std::size_t before = logOfTool().size();
  {
    auto session = openSession(testing::languageModel(), {{"record.nvtx", "on"}});
    ASSERT_TRUE(session && session->step());
  }
  std::istringstream further(logOfTool().substr(before));
  std::string phase, within;
  std::set<std::string> modules;
  for (std::string line; std::getline(further, line);) {
    const std::size_t depth = line.find_first_not_of(' ') / 2;
    if (depth == 1) phase = line.substr(2), within.clear();
    if (depth == 2) within = line.find('\'') == std::string::npos ? line.substr(4) : "";
    if (depth == 3 && line.find('\'') != std::string::npos) modules.insert(phase + " " + within);
  }
  for (const char* one : {"forward h.0.attn", "forward h.1.mlp", "backward h.0.attn"})
    EXPECT_TRUE(std::ranges::any_of(modules, [&](const std::string& module) { return module.starts_with(one); }))
        << one << " of " << modules.size();
}

}  // namespace
}  // namespace stepscope

// The child process of plugins/python: it ends and is started again, within one program. Needs a Python that has torch; what
// goes over the border of the plugin is in plugins/python/tests/test_host.py.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <chrono>
#include <cstring>
#include <string>

#include "plugins/python/host_process.h"

namespace stepscope::testing {
namespace {

using python::HostProcess;

struct Node {
  // y = call(x), both of four float32.
  explicit Node(const std::string& call, const std::string& kind = "aten", const std::string& file = "") {
    const std::string operand = R"([[1,[4],)";
    definition =
        R"({"kind":")" + kind + R"(","call":")" + call + R"(","file":")" + file +
        R"(","module":"","arguments":[{"tensor":0}],"backward":false,"threads":1,"wanted":[],"arriving":[],"inputs":)" +
        operand + std::to_string(x) + R"(]],"outputs":)" + operand + std::to_string(y) + "]]";
  }
  ~Node() {
    HostProcess::instance().forget(known);
    HostProcess::instance().release(x);
    HostProcess::instance().release(y);
  }
  std::string run() { return HostProcess::instance().run(known, definition, 1); }
  float* at(std::size_t offset) { return reinterpret_cast<float*>(HostProcess::instance().at(offset)); }

  std::size_t x = HostProcess::instance().allocate(16), y = HostProcess::instance().allocate(16);
  std::string definition;
  HostProcess::Known known;
};

// Empty, or why there is nothing to test.
std::string missing() {
  Node node("aten::abs.default");
  const std::string wrong = HostProcess::instance().define(node.known, node.definition);
  return wrong.find("No module named 'torch'") != std::string::npos || wrong.find("cannot be started") != std::string::npos
             ? wrong
             : "";
}

TEST(PythonHost, IsStartedAgainAfterItEnded) {
  if (const std::string why = missing(); !why.empty()) GTEST_SKIP() << why;
  Node node("aten::abs.default"), killer("Killed", "function", SS_SOURCE_DIR "/plugins/python/tests/misbehaving.py");
  for (int i = 0; i < 4; ++i) node.at(node.x)[i] = static_cast<float>(-i);
  ASSERT_EQ(node.run(), "");
  EXPECT_EQ(node.at(node.y)[3], 3);
  const std::string ended = killer.run();
  EXPECT_NE(ended.find("was ended by signal 9; it is started again for the next step"), std::string::npos) << ended;
  node.at(node.y)[3] = 0;
  ASSERT_EQ(node.run(), "") << "the node is defined again in the new process";
  EXPECT_EQ(node.at(node.y)[3], 3);
}

TEST(PythonHost, IsEndedWhenItTakesTooLong) {
  if (const std::string why = missing(); !why.empty()) GTEST_SKIP() << why;
  Node node("aten::abs.default"), slow("Slow", "function", SS_SOURCE_DIR "/plugins/python/tests/misbehaving.py");
  ASSERT_EQ(HostProcess::instance().define(slow.known, slow.definition), "");
  ::setenv("STEPSCOPE_PYTHON_TIMEOUT", "1", 1);
  const std::string ended = slow.run();
  ::unsetenv("STEPSCOPE_PYTHON_TIMEOUT");
  EXPECT_NE(ended.find("took longer than 1 s and was ended"), std::string::npos) << ended;
  EXPECT_EQ(node.run(), "");
}

TEST(PythonHost, MemoryIsUsedAgain) {
  HostProcess& host = HostProcess::instance();
  const std::size_t a = host.allocate(100), b = host.allocate(1), c = host.allocate(200);
  EXPECT_EQ(a % 64, 0U);
  EXPECT_EQ(b, a + 128);
  host.release(b);
  EXPECT_EQ(host.allocate(64), b) << "a hole that is large enough";
  host.release(a);
  host.release(b);
  EXPECT_EQ(host.allocate(192), a) << "neighbours that are free are one";
  host.release(a);
  host.release(c);
}

}  // namespace
}  // namespace stepscope::testing

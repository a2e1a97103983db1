// Plugins in the worker, which the window starts: loaded because the environment says so, and a crash ends the worker alone.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "engine/snapshot/worker.pb.h"
#include "tests/app/cli/program.h"
#include "tests/engine/plugin/bad_model.h"
#include "tests/engine/plugin/compile.h"

namespace stepscope::testing {
namespace {

std::string frameOf(const std::string& bytes) {
  std::string prefix(4, '\0');
  for (std::size_t i = 0; i < 4; ++i) prefix[i] = static_cast<char>(bytes.size() >> (8 * i) & 0xff);
  return prefix + bytes;
}

template <typename Fill>
std::string request(std::uint64_t id, Fill&& fill) {
  snapshot::Request r;
  r.set_id(id);
  fill(r);
  return frameOf(r.SerializeAsString());
}

std::vector<snapshot::Response> responsesOf(const std::string& bytes) {
  std::vector<snapshot::Response> responses;
  for (std::size_t at = 0; at + 4 <= bytes.size();) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < 4; ++i)
      size |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
    if (at + 4 + size > bytes.size()) break;
    EXPECT_TRUE(responses.emplace_back().ParseFromString(bytes.substr(at + 4, size)));
    at += 4 + size;
  }
  return responses;
}

struct Talk {
  std::vector<snapshot::Response> responses;
  std::string told;  // on stderr
  int status = 0;    // of wait()
};

// Opens the model, sets `settings`, builds and trains two steps.
Talk talkTo(const TemporaryFolder& folder, const std::string& environment, const std::string& setting = "") {
  std::string bytes = request(1, [](auto& r) { r.mutable_hello()->set_protocol(1); });
  bytes += request(2, [&](auto& r) { r.mutable_open()->set_path(writeBadModel(folder).string()); });
  bytes += request(3, [&](auto& r) {
    r.mutable_configure();
    if (setting.empty()) return;
    r.mutable_configure()->add_settings()->set_name(setting.substr(0, setting.find('=')));
    r.mutable_configure()->mutable_settings(0)->set_value(setting.substr(setting.find('=') + 1));
  });
  bytes += request(4, [](auto& r) { r.mutable_build(); });
  bytes += request(5, [](auto& r) { r.mutable_train()->set_steps(2); });
  folder.write("in", bytes);
  const std::string in = folder.path().string();
  Talk talk;
  talk.status =
      std::system(fmt::format("{} exec {} worker < {}/in > {}/out 2> {}/told", environment, SS_PROGRAM, in, in, in).c_str());
  talk.responses = responsesOf(contents(folder.path() / "out"));
  talk.told = contents(folder.path() / "told");
  return talk;
}

std::string firstError(const Talk& talk) {
  for (const snapshot::Response& response : talk.responses)
    if (response.has_error()) return response.error().message();
  return {};
}

std::filesystem::path compileBad(const TemporaryFolder& folder, const std::string& which) {
  return compilePlugin(folder.path(), "bad", SS_SOURCE_DIR "/tests/engine/plugin/bad_plugin.c", "-DBAD=" + which);
}

TEST(PluginInTheWorker, ComesFromTheEnvironmentAlone) {
  const TemporaryFolder folder;
  const auto file = compileBad(folder, "NOTHING");
  const Talk with = talkTo(folder, "STEPSCOPE_SET_PLUGIN=" + file.string());
  EXPECT_EQ(firstError(with), "");
  EXPECT_EQ(with.status, 0) << with.told;
  const Talk without = talkTo(folder, "");
  EXPECT_NE(firstError(without).find("domain 'bad' has no such operator"), std::string::npos) << firstError(without);
  // What a window asks for loads nothing.
  const Talk asked = talkTo(folder, "", "plugin=" + file.string());
  EXPECT_NE(firstError(asked).find("option 'plugin': found '" + file.string() + "'; the session was opened with ''"),
            std::string::npos)
      << firstError(asked);
}

TEST(PluginInTheWorker, IsNamedWhenItCrashesOrFails) {
  const TemporaryFolder folder;
  const Talk crashed = talkTo(folder, "STEPSCOPE_SET_PLUGIN=" + compileBad(folder, "RUN_CRASHES").string());
  ASSERT_TRUE(WIFSIGNALED(crashed.status) || WEXITSTATUS(crashed.status) == 128 + SIGSEGV) << crashed.status;
  EXPECT_NE(crashed.told.find("plugin 'bad': run of kernel 'bad.Twice': crashed (SIGSEGV)"), std::string::npos)
      << crashed.told;
  const Talk failed = talkTo(folder, "STEPSCOPE_SET_PLUGIN=" + compileBad(folder, "GRADIENT_WRONG_VALUE").string());
  EXPECT_EQ(failed.status, 0) << failed.told;
  EXPECT_NE(firstError(failed).find("plugin 'bad': gradient of op 'bad.Twice': uses value 4711"), std::string::npos)
      << firstError(failed);
}

// The graphs that a crash of a build leaves behind know the ops of the plugin, whose registry is the session's.
TEST(PluginInTheWorker, IsKnownInTheGraphsThatAreSentDuringABuild) {
  const TemporaryFolder folder;
  const Talk crashed = talkTo(folder, "STEPSCOPE_SET_PLUGIN=" + compileBad(folder, "CREATE_CRASHES").string());
  ASSERT_NE(crashed.told.find("crashed (SIGSEGV)"), std::string::npos) << crashed.told;
  int found = 0;
  for (const snapshot::Response& response : crashed.responses)
    for (const auto& node : response.graph().nodes())
      if (node.op() == "Twice") {
        ++found;
        EXPECT_EQ(node.category(), "elementwise") << response.graph().phase();
      }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace stepscope::testing

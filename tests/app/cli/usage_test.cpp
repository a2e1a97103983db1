// Exit codes and messages: 2 for wrong usage, told before any work; 1 when the work failed.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/app/cli/program.h"
#include "tests/app/cli/samples.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

struct Usage {
  const char* name;
  std::string arguments;
  int exitCode;
  const char* text;  // that the answer contains
};

void PrintTo(const Usage& usage, std::ostream* out) { *out << usage.arguments; }

const std::string kTrain = "train " + kDigits + " ";

std::vector<Usage> usages() {
  return {
      {"NoModel", "train", 2, "MODEL is required"},
      {"UnknownCommand", "frobnicate", 2, "error: "},
      {"UnknownFlag", "build " + kDigits + " --frob", 2, "error: "},
      {"UnknownOptimizer", kTrain + "--optimizer foo", 2,
       "option 'optimizer': found 'foo'; expected one of sgd, adam, adamw, lamb"},
      {"RateThatIsNoNumber", kTrain + "--lr abc", 2, "option 'lr': found 'abc'; expected a number"},
      {"NegativeRate", kTrain + "--lr -1", 2, "option 'lr': found '-1'; expected a number from 0"},
      {"OneBeta", kTrain + "--betas 1", 2, "option 'betas': found '1'; expected two numbers A,B"},
      {"BetaOfOne", kTrain + "--betas 1,0.9", 2, "option 'betas'"},
      {"NegativeSteps", kTrain + "--steps -1", 2, "option 'steps'"},
      {"NoAccumulation", kTrain + "--accumulate 0", 2, "option 'accumulate': found '0'"},
      {"NesterovWithoutMomentum", kTrain + "--nesterov", 2, "option 'nesterov': momentum is 0"},
      {"UnknownSchedule", kTrain + "--lr-schedule foo", 2, "expected one of constant, linear, cosine, step, polynomial"},
      {"UnknownSetting", kTrain + "--set foo=1", 2, "option 'foo': unknown"},
      {"SettingWithoutValue", kTrain + "--set pass.cse", 2, "option 'set': found 'pass.cse'; expected NAME=VALUE"},
      {"MalformedFreeze", kTrain + "--freeze '['", 2, "option 'freeze': regular expression '[' is malformed"},
      {"MalformedTrain", kTrain + "--train '('", 2, "option 'train': regular expression '(' is malformed"},
      {"MalformedGroup", kTrain + "--group '([:lr=1'", 2, "option 'group': regular expression '([' is malformed"},
      {"GroupWithoutSettings", kTrain + "--group x", 2, "option 'group': found 'x'; expected REGEX:lr=X,weight_decay=Y"},
      {"GroupWithUnknownSetting", kTrain + "--group 'x:foo=1'", 2, "expected lr=X or weight_decay=X"},
      {"DimWithoutNumber", kTrain + "--dim x", 2, "option 'dim': found 'x'; expected NAME=NUMBER"},
      {"PaddingAboveOne", kTrain + "--padding 2", 2, "option 'padding': found '2'"},
      {"ResumeFromNothing", kTrain + "--resume", 2, "option 'resume': no file; expected --init-from"},
      {"ResumeAndStartStep", kTrain + "--init-from x --resume --start-step 7", 2,
       "option 'start-step': found 7 with --resume, which begins at the step of the file"},
      {"ResumeFromNothingInBuild", "build " + kDigits + " --resume", 2, "option 'resume'"},
      {"FetchWithoutFile", kTrain + "--fetch loss", 2, "option 'fetch': found 'loss'; expected VALUE=FILE.npy"},
      {"FetchWithoutFileInRun", "run " + kDigits + " --fetch loss", 2, "option 'fetch'"},
      {"SaveIntoNoFolder", kTrain + "--save nofolder/x.safetensors", 1,
       "save 'nofolder/x.safetensors': no folder 'nofolder'"},
      {"FetchIntoNoFolder", kTrain + "--fetch loss=nofolder/x.npy", 1, "fetch 'nofolder/x.npy': no folder 'nofolder'"},
      {"DumpOntoAFolder", kTrain + "--dump-params /tmp", 1, "dump-params '/tmp': is a folder"},
      {"GradientsOfNoStep", kTrain + "--steps 0 --dump-grads x", 2, "option 'steps': found 0; expected at least 1"},
      {"ParametersFromNoCheckpoint", kTrain + "--init-from " + kDigits, 1, "checkpoint '/"},
      {"NoSuchPlugin", kTrain + "--plugin nowhere.so", 1, "plugin 'nowhere.so': no such file, nor in plugin.path ''"},
      {"LogitsWithoutFunction", kTrain + "--logits logits", 1,
       "option 'logits': 'logits' without a loss to attach; expected --loss-fn too"},
      {"PluginVerb", "plugin frob x", 2, "plugin: found 'frob'; expected check or new"},
      {"PluginCheckMode", kTrain + "--set plugin.check=maybe", 2,
       "option 'plugin.check': found 'maybe'; expected on or off"},
      {"NoSuchModel", "train nofile.onnx", 1, "model 'nofile.onnx'"},
      {"NoSuchData", kTrain + "--data nofile.npz", 1, "data 'nofile.npz': not found"},
      {"NoSuchLoss", kTrain + "--loss nope", 1, "loss 'nope': no such value; outputs are"},
      {"NoSuchDim", "build " + kDigits + " --dim nope=3", 1, "option 'dim': no input has a dimension 'nope'"},
      {"NoSuchPaddedInput", "build " + kDigits + " --pad nope=0", 1, "option 'pad': 'nope' is no input of the model"},
      {"TrainsNothing", kTrain + "--train nomatch", 1, "option 'train': 'nomatch' matches no initializer"},
      {"FreezesEverything", kTrain + "--freeze .", 1, "no initializer that is trained reaches it"},
      {"FetchOfNothing", kTrain + "--fetch nope=x.npy", 1, "fetch 'nope': the step does not compute it"},
      {"NoCuda", kTrain + "--device cuda", 1, "device 'cuda': not available in this build"},
      {"NoCudaInBuild", "build " + kDigits + " --device cuda:1", 1, "device 'cuda:1': not available in this build"},
      {"UnknownPrecision", kTrain + "--precision b16", 2, "precision 'b16': unknown; expected fp32, bf16 or fp16"},
      {"UnknownDevice", kTrain + "--device tpu", 2, "device 'tpu': unknown"},
      {"NotAModel", "inspect /etc/passwd", 1, "expected an ONNX protobuf file"},
      {"NoSuchProject", "report nofile.stepscope -o x.html", 1, "expected a .stepscope file"},
      {"NothingToExpect", "run " + kDigits + " --expect nodir", 1, "expect 'nodir': no output_0.pb"},
      {"FreezeWithoutEffect", "build " + kDigits + " --freeze nomatch", 0,
       "option 'freeze': 'nomatch' matches no initializer"},
      {"GroupWithoutEffect", "build " + kDigits + " --group nomatch:lr=1", 0,
       "option 'group': 'nomatch' matches no trained parameter"},
  };
}

class CommandLine : public ::testing::TestWithParam<Usage> {};

TEST_P(CommandLine, AnswersWithItsExitCodeAndReason) {
  const TemporaryFolder folder;
  const Answer answer = run(GetParam().arguments, folder.path());
  EXPECT_EQ(answer.exitCode, GetParam().exitCode) << answer.text;
  EXPECT_NE(answer.text.find(GetParam().text), std::string::npos) << answer.text;
  EXPECT_EQ(answer.text.find("step      0"), std::string::npos) << "no step was run before it was told:\n" << answer.text;
}

// What a full disk does to a run: no signal, the file named, the run finished.
TEST(NoRoom, EndsWithTheNameOfTheFile) {
  const TemporaryFolder folder;
  const auto limited = [&](const std::string& arguments, rlim_t bytes) {
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{bytes, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    const Answer answer = run(arguments, folder.path());
    setrlimit(RLIMIT_FSIZE, &before);
    return answer;
  };
  const Answer save = limited(kTrain + "--save " + (folder.path() / "x.safetensors").string(), 16 << 10);
  EXPECT_EQ(save.exitCode, 1) << save.text;
  EXPECT_NE(save.text.find("error: file 'x.safetensors': "), std::string::npos) << save.text;
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "x.safetensors")) << "half a file";
  const auto project = folder.path() / "p.stepscope";
  const Answer recorded = limited(kTrain + "--steps 4000 --project " + project.string(), 400 << 10);
  EXPECT_EQ(recorded.exitCode, 1) << recorded.text;
  EXPECT_NE(recorded.text.find("step   3999"), std::string::npos) << "the run did not go on:\n" << recorded.text;
  EXPECT_NE(recorded.text.find("error: project '" + project.string() + "': "), std::string::npos) << recorded.text;
  EXPECT_NE(recorded.text.find("of 4000 steps are not recorded"), std::string::npos) << recorded.text;
  EXPECT_NE(recorded.text.find("(ulimit -f)"), std::string::npos) << recorded.text;
  // On a busy machine all steps may be over before the first is written: then the end alone can tell.
  if (recorded.text.find("4000 of 4000 steps") == std::string::npos)
    EXPECT_NE(recorded.text.find("warning: recording pauses "), std::string::npos) << recorded.text;
}

TEST(Project, ThatIsAFolderIsNamed) {
  const TemporaryFolder folder;
  const auto project = folder.path() / "p";
  std::filesystem::create_directory(project);
  const Answer answer = run(kTrain + "--project " + project.string(), folder.path());
  EXPECT_EQ(answer.exitCode, 1);
  EXPECT_NE(answer.text.find("error: project '" + project.string() + "': "), std::string::npos) << answer.text;
}

TEST(Open, SaysThatThereIsNoDisplay) {
  const TemporaryFolder folder;
  ASSERT_EQ(unsetenv("DISPLAY") | unsetenv("WAYLAND_DISPLAY") | unsetenv("QT_QPA_PLATFORM"), 0);
  const Answer answer = run("open " + kDigits, folder.path());
  EXPECT_EQ(answer.exitCode, 1) << answer.text;
  EXPECT_NE(answer.text.find("error: window '"), std::string::npos)
      << answer.text;  // no display, or a build without the window
}

INSTANTIATE_TEST_SUITE_P(Usage, CommandLine, ::testing::ValuesIn(usages()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Inspect, ListsParametersAndFoldsShapeConstants) {
  const TemporaryFolder folder;
  const Answer answer = run("inspect " SS_SOURCE_DIR "/tests/golden/sources/keras_gru/model.onnx", folder.path());
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  EXPECT_NE(answer.text.find("shape constants of"), std::string::npos) << answer.text;
  EXPECT_EQ(answer.text.find("cannot carry a gradient"), std::string::npos) << answer.text;
  EXPECT_LT(answer.text.rfind(" trained "), answer.text.find("a number in arithmetic")) << answer.text;
  // The state that the layer begins with: a scalar zero, expanded.
  EXPECT_EQ(answer.text.find("zeros/Const:0 "), answer.text.rfind("zeros/Const:0 "));
  EXPECT_GT(answer.text.find("zeros/Const:0 "), answer.text.rfind(" trained ")) << answer.text;
}

// The environment stands between the defaults and the command line.
TEST(OptionsOfTheEnvironment, AreShownAndGiveWay) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("stepscope_environment_{}", getpid());
  std::filesystem::create_directories(folder);
  const char* cache = std::getenv("STEPSCOPE_SET_CACHE_DIR");  // CTest sets it for all tests
  const std::string cacheDir = cache ? cache : "";
  unsetenv("STEPSCOPE_SET_CACHE_DIR");
  setenv("STEPSCOPE_SET_LR", "0.25", 1);
  const Answer shown = run("options --json --set eps=0.5", folder), beaten = run("options --json --set lr=0.125", folder);
  setenv("STEPSCOPE_SET_LR", "fast", 1);
  const Answer refused = run("options --json", folder);
  unsetenv("STEPSCOPE_SET_LR");
  if (!cacheDir.empty()) setenv("STEPSCOPE_SET_CACHE_DIR", cacheDir.c_str(), 1);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(shown.exitCode, 0);
  EXPECT_NE(shown.text.find(R"("set_by":"environment")"), std::string::npos);
  EXPECT_NE(shown.text.find(R"("set_by":"command line")"), std::string::npos);
  EXPECT_EQ(beaten.text.find(R"("set_by":"environment")"), std::string::npos);
  EXPECT_EQ(refused.exitCode, 2);
  EXPECT_NE(refused.text.find("STEPSCOPE_SET_LR: option 'lr': found 'fast'"), std::string::npos) << refused.text;
}

}  // namespace
}  // namespace stepscope::testing

// Plugins that break the contract, one each: every one ends the program with an error that names plugin and function, and
// never with a signal.
#include <gtest/gtest.h>

#include "tests/app/cli/program.h"
#include "tests/engine/plugin/bad_model.h"
#include "tests/engine/plugin/compile.h"

namespace stepscope::testing {
namespace {

struct Bad {
  const char* name;     // of bad_plugin.c
  const char* message;  // that the answer contains
  const char* arguments = "";
  const char* flags = "";
};

void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.name; }

constexpr const char* kCheck = "--set plugin.check=on";
constexpr const char* kData = "--data x.bad";
constexpr const char* kThrows = "expected that no exception leaves a function of a plugin";

const Bad kBad[] = {
    {"ENTRY_SIZE", "stepscope_plugin_entry: found size 40; expected "},
    {"NEWER_MAJOR", "stepscope_plugin_entry: found ABI 2.2; expected 1.2"},
    {"NEWER_MINOR", "stepscope_plugin_entry: found ABI 1.3; expected 1.2"},
    {"NO_ENTRY", "no symbol 'stepscope_plugin_entry'", "", "-DBAD_ENTRY=1"},
    {"MISSING_SYMBOL", "nobody_has_this", "", "-DBAD_SYMBOL=1"},
    {"NAME_WITH_BLANKS", "stepscope_plugin_entry: found name 'so bad'"},
    {"NO_VERSION", "stepscope_plugin_entry: found no version"},
    {"OP_SIZE", "plugin 'bad': ops[0]: found size 8; expected size "},
    {"OP_NULL", "plugin 'bad': ops[0]: found a null pointer"},
    {"DOMAIN_TAKEN", "plugin 'bad': op 'com.microsoft.Twice': found domain 'com.microsoft'"},
    {"LATE_VERSION", "plugin 'bad': op 'bad.Twice': found since_version 22; expected one from 1 to 21"},
    {"NO_INFER_SHAPE", "plugin 'bad': op 'bad.Twice': found no infer_shape"},
    {"NO_GRADIENT_REASON", "plugin 'bad': op 'bad.Twice': found neither a gradient nor no_gradient_reason"},
    {"NO_CATEGORY", "plugin 'bad': op 'bad.Twice': found category 0"},
    {"REPEATED_SIDE_EFFECT", "plugin 'bad': op 'bad.Twice': found a side effect, which recompute would repeat"},
    {"KERNEL_SIZE", "plugin 'bad': kernels[0]: found size "},
    {"KERNEL_OF_NOTHING", "plugin 'bad': kernel 'bad.Thrice': found no such op in this plugin"},
    {"NO_RUN", "plugin 'bad': kernel 'bad.Twice': found no run"},
    {"OTHER_DEVICE", "plugin 'bad': kernel 'bad.Twice': found device 'abacus'"},
    {"NO_KERNEL", "plugin 'bad': op 'bad.Twice': found no kernel of it"},
    {"SAME_OP_TWICE", "plugin 'bad': found twice op 'bad.Twice since version 1'"},
    {"PASS_PHASE", "plugin 'bad': pass 'look_at_twice': found phase 'after lunch'"},
    {"PASS_NAME_TAKEN", "plugin 'bad': pass 'cse': found a built-in one"},
    {"OPTION_NAME", "plugin 'bad': options[0]: found name 'lr'; expected one that begins with 'bad.'"},
    {"NO_EXAMPLE", "plugin 'bad': op 'bad.Twice': found 0 examples"},
    {"INIT_FAILS", "plugin 'bad': init: answers 1; expected SSP_OK"},
    {"INIT_CRASHES", "plugin 'bad': init: crashed (SIGSEGV)"},
    {"SHAPE_NOT_SET", "plugin 'bad': infer_shape of op 'bad.Twice': gives output 0 no type"},
    {"SHAPE_WRONG_INPUT", "plugin 'bad': infer_shape of op 'bad.Twice': asks for input 5; expected one of 1"},
    {"SHAPE_WRONG_EXTENT", "plugin 'bad': infer_shape of op 'bad.Twice': uses extent 77"},
    {"SHAPE_NEGATIVE", "plugin 'bad': infer_shape of op 'bad.Twice': gives axis 0 of output 0 the extent -3"},
    {"SHAPE_FAILS", "Twice 'twice': plugin 'bad': infer_shape of op 'bad.Twice': no such luck"},
    {"SHAPE_SILENT", "plugin 'bad': infer_shape of op 'bad.Twice': answers 1 without fail()"},
    {"SHAPE_THROWS", kThrows},
    {"GRADIENT_OTHER_SHAPE",
     "plugin 'bad': gradient of op 'bad.Twice': gives input 0 a gradient float32[3, 4]; expected float32[4, 3]"},
    {"GRADIENT_UNKNOWN_OP", "plugin 'bad': gradient of op 'bad.Twice': emits op 'Frobnicate'"},
    {"GRADIENT_ARITY", "plugin 'bad': gradient of op 'bad.Twice': emits 'Mul' with 1 inputs and 1 outputs"},
    {"GRADIENT_WRONG_VALUE", "plugin 'bad': gradient of op 'bad.Twice': uses value 4711"},
    {"GRADIENT_NO_TYPE", "plugin 'bad': gradient of op 'bad.Twice': emits MatMul(float32[4, 3], float32[4, 3])"},
    {"GRADIENT_THROWS", kThrows},
    {"CREATE_NO_DETERMINISM", "plugin 'bad': create of kernel 'bad.Twice': does not say what its bits depend on"},
    {"CREATE_CRASHES", "plugin 'bad': create of kernel 'bad.Twice': crashed (SIGSEGV)"},
    {"RUN_SILENT", "plugin 'bad': run of kernel 'bad.Twice': answers 1 without fail()"},
    {"RUN_THROWS", "plugin 'bad': run of kernel 'bad.Twice': threw an exception"},
    {"RUN_CRASHES", "plugin 'bad': run of kernel 'bad.Twice': crashed (SIGSEGV)"},
    {"RUN_ABORTS", "plugin 'bad': run of kernel 'bad.Twice': crashed (SIGABRT)"},
    {"RUN_OVERRUN", "plugin 'bad': run of kernel 'bad.Twice': wrote behind output 0: at byte 48 of 48", kCheck},
    {"RUN_UNDERRUN", "plugin 'bad': run of kernel 'bad.Twice': wrote before output 0: 4 bytes before its begin", kCheck},
    {"RUN_CHANGES_INPUT", "plugin 'bad': run of kernel 'bad.Twice': changed input 0", kCheck},
    {"RUN_SCRATCH_OVERRUN", "plugin 'bad': run of kernel 'bad.Twice': wrote behind scratch memory: at byte 16 of 16",
     kCheck},
    {"BODY_THROWS", "plugin 'bad': run of kernel 'bad.Twice': a body of parallel threw an exception"},
    {"PASS_OTHER_SHAPE", "plugin 'bad': run of pass 'look_at_twice': replaces 'y' by float32[3, 4]; expected float32[4, 3]"},
    {"PASS_UNKNOWN_OP", "plugin 'bad': run of pass 'look_at_twice': adds op 'Frobnicate'"},
    {"PASS_WRONG_NODE", "plugin 'bad': run of pass 'look_at_twice': uses node 4711"},
    {"PASS_OLD_VALUE", "plugin 'bad': run of pass 'look_at_twice': replaces 'y' by 'product'"},
    {"PASS_CYCLE", "plugin 'bad': run of pass 'look_at_twice': leaves a graph with "},
    {"PASS_THROWS", kThrows},
    {"READER_SUFFIX", "plugin 'bad': reader 'nothing': found suffix '.npz'"},
    {"READER_NO_ENTRIES", "data 'x.bad': plugin 'bad': open of reader 'nothing': finds 0 entries", kData},
    {"READER_ARRAY_TWICE", "data 'x.bad': plugin 'bad': open of reader 'nothing': lists array 'x' twice", kData},
    {"READER_NO_TYPE", "data 'x.bad': plugin 'bad': open of reader 'nothing': lists array 0 without", kData},
    {"READER_SILENT", "plugin 'bad': open of reader 'nothing': answers 1 without fail()", kData},
    {"READER_THROWS", kThrows, kData},
    {"READER_CRASHES", "plugin 'bad': read of reader 'nothing': crashed (SIGSEGV)", kData},
};

Answer trainWith(const TemporaryFolder& folder, const std::filesystem::path& plugin, const std::string& arguments) {
  return run(fmt::format("train {} --plugin {} --threads 2 --steps 2 {}", writeBadModel(folder).string(), plugin.string(),
                         arguments),
             folder.path());
}

class BadPlugin : public ::testing::TestWithParam<Bad> {};

TEST_P(BadPlugin, EndsInAnErrorThatNamesPluginAndFunction) {
  const TemporaryFolder folder;
  const Bad& bad = GetParam();
  const bool throws = std::string(bad.name).ends_with("THROWS");
  const std::string which = *bad.flags == '\0' ? fmt::format("-DBAD={}", bad.name) : bad.flags;
  const auto file =
      compilePlugin(folder.path(), "bad", SS_SOURCE_DIR "/tests/engine/plugin/bad_plugin.c",
                    which + " -Wno-missing-field-initializers", throws ? "c++ -std=c++20 -x c++" : "cc -std=c11");
  const Answer answer = trainWith(folder, file, bad.arguments);
  EXPECT_EQ(answer.exitCode, 1) << answer.text;
  EXPECT_NE(answer.text.find("error: "), std::string::npos) << answer.text;
  EXPECT_NE(answer.text.find("plugin '"), std::string::npos) << answer.text;
  EXPECT_NE(answer.text.find(bad.message), std::string::npos) << answer.text;
}

INSTANTIATE_TEST_SUITE_P(Contract, BadPlugin, ::testing::ValuesIn(kBad),
                         [](const auto& info) { return std::string(info.param.name); });

// The same file without a breach trains, so that the errors above come from the breaches.
TEST(GoodPlugin, OfTheSameFileTrains) {
  const TemporaryFolder folder;
  const auto file = compilePlugin(folder.path(), "bad", SS_SOURCE_DIR "/tests/engine/plugin/bad_plugin.c");
  for (const char* arguments : {"", kCheck, kData}) {
    const Answer answer = trainWith(folder, file, arguments);
    EXPECT_EQ(answer.exitCode, 0) << answer.text;
    EXPECT_EQ(answer.text.find("error"), std::string::npos) << answer.text;
  }
}

TEST(PluginFile, ThatIsNoneIsNamed) {
  const TemporaryFolder folder;
  const auto text = folder.write("text.so", "not a library");
  const Answer wrong = trainWith(folder, text, ""), missing = trainWith(folder, "nowhere.so", "");
  EXPECT_EQ(wrong.exitCode, 1);
  EXPECT_NE(wrong.text.find(text.string() + "': not loaded: "), std::string::npos) << wrong.text;
  EXPECT_EQ(missing.exitCode, 1);
  EXPECT_NE(missing.text.find("plugin 'nowhere.so': no such file, nor in plugin.path ''"), std::string::npos)
      << missing.text;
}

}  // namespace
}  // namespace stepscope::testing

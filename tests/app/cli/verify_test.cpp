// `verify` and `train` on a captured folder: agreement, an edited golden, and folders that have nothing to compare.
#include <gtest/gtest.h>

#include "engine/data/safetensors.h"
#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

namespace fs = std::filesystem;

// A folder as stepscope_capture writes it, with the engine's own gradients in place of PyTorch's.
class Captured : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(capture_);
    for (const char* file : {"model.onnx", "batches.npz"})
      fs::copy_file(fs::path(SS_SAMPLES) / "digits" / file, capture_ / file);
    const Answer trained = run("train " + capture_.string() + " --lr 0 --json --set kernels=reference --dump-grads " +
                                   (folder_.path() / "grads.safetensors").string(),
                               folder_.path());
    ASSERT_EQ(trained.exitCode, 0) << trained.text;
    const auto at = trained.text.find("\"loss\":");
    ASSERT_NE(at, std::string::npos);
    loss_ = std::stod(trained.text.substr(at + 7));
    auto file = readSafetensors(folder_.path() / "grads.safetensors");
    ASSERT_TRUE(file.has_value());
    tensors_ = std::move(file->tensors);
    write();
  }

  void write(const std::string& more = "") {
    std::ofstream(capture_ / "capture.json") << fmt::format(R"({{"loss": "loss", "losses": [{}]{}}})", loss_, more);
    std::map<std::string, TensorView> views;
    for (auto& [name, tensor] : tensors_) views["grad/" + name] = tensor.view();
    ASSERT_TRUE(writeSafetensors(capture_ / "golden.safetensors", views).has_value());
  }

  Answer verify(const std::string& arguments = "") {
    return run("verify " + capture_.string() + " " + arguments, folder_.path());
  }
  Answer train(const std::string& arguments = "") {
    return run("train " + capture_.string() + " --steps 2 " + arguments, folder_.path());
  }

  TemporaryFolder folder_;
  fs::path capture_ = folder_.path() / "captured";
  std::map<std::string, Tensor> tensors_;
  double loss_ = 0;
};

TEST_F(Captured, AgreesAndSaysSo) {
  const Answer answer = verify();
  EXPECT_EQ(answer.exitCode, 0) << answer.text;
  EXPECT_NE(answer.text.find("PyTorch: 1 loss, "), std::string::npos) << answer.text;
  EXPECT_NE(answer.text.find(" agree"), std::string::npos) << answer.text;
  const Answer trained = train();
  EXPECT_EQ(trained.exitCode, 0) << trained.text;
  EXPECT_NE(trained.text.find("PyTorch: 1 loss, "), std::string::npos) << trained.text;
  EXPECT_EQ(train("--verify off").text.find("PyTorch"), std::string::npos);
  EXPECT_EQ(train("--verify maybe").exitCode, 2);
}

// The comparison is in float32; what it says must not be taken for a verdict on another precision.
TEST_F(Captured, AnotherPrecisionIsNotCompared) {
  const std::string plain = verify().text, said = "bf16 was not compared: `stepscope precision` judges it";
  EXPECT_NE(plain.find(" agree in fp32; "), std::string::npos) << plain;
  EXPECT_EQ(plain.find("was not compared"), std::string::npos) << plain;
  const Answer low = verify("--precision bf16");
  EXPECT_EQ(low.exitCode, 0) << low.text;
  EXPECT_NE(low.text.find(said), std::string::npos) << low.text;
  EXPECT_NE(verify("--precision fp16").text.find("; fp16 was not compared: "), std::string::npos);
  const Answer json = verify("--precision bf16 --json"), trained = train("--precision bf16"),
               trainedJson = train("--precision bf16 --json");
  EXPECT_NE(trained.text.find(said), std::string::npos) << trained.text;
  for (const Answer& answer : {json, trainedJson}) {
    const auto at = answer.text.find(R"("event":"verify")");
    ASSERT_NE(at, std::string::npos) << answer.text;
    const auto begin = answer.text.rfind('\n', at) + 1;
    const std::string event = answer.text.substr(begin, answer.text.find('\n', at) - begin);
    EXPECT_NE(event.find(R"("precision":"fp32")"), std::string::npos) << event;
    EXPECT_NE(event.find(R"("precision_not_compared":"bf16")"), std::string::npos) << event;
  }
  EXPECT_NE(verify("--json").text.find(R"("precision_not_compared":"")"), std::string::npos);
}

TEST_F(Captured, NamesWhatDiffersAndTrainsOn) {
  auto& [name, gradient] = *tensors_.begin();
  for (std::int64_t i = 0; i < gradient.elements(); ++i)
    storeElement(gradient.view(), i, -elementAsDouble(gradient.view(), i));
  write();
  const Answer answer = verify();
  EXPECT_EQ(answer.exitCode, 1) << answer.text;
  EXPECT_NE(answer.text.find("differs gradient '" + name + "'"), std::string::npos) << answer.text;
  EXPECT_NE(answer.text.find("gradient reversal lost"), std::string::npos) << answer.text;
  const Answer json = verify("--json");
  EXPECT_EQ(json.exitCode, 1);
  EXPECT_NE(json.text.find(R"("verdict":"differs")"), std::string::npos) << json.text;
  EXPECT_NE(json.text.find(R"("event":"verify")"), std::string::npos) << json.text;
  EXPECT_NE(json.text.find(R"("differs":1,)"), std::string::npos) << json.text;
  const Answer trained = train();
  EXPECT_EQ(trained.exitCode, 0) << trained.text;
  EXPECT_NE(trained.text.find("warning: not what PyTorch computed: 1 tensor of "), std::string::npos) << trained.text;
  EXPECT_NE(trained.text.find("'" + name + "'"), std::string::npos) << trained.text;
  EXPECT_NE(trained.text.find("step      1"), std::string::npos) << "it goes on:\n" << trained.text;
}

TEST_F(Captured, TellsALossThatDiffers) {
  loss_ += 0.5;
  write();
  EXPECT_EQ(verify().exitCode, 1);
  EXPECT_NE(train().text.find("loss 'loss'"), std::string::npos);
}

TEST_F(Captured, TheComparisonChangesNothingOfTheRun) {
  const auto end = folder_.path() / "end.safetensors";
  ASSERT_EQ(train("--lr 0.1 --dump-params " + end.string()).exitCode, 0);
  const std::string with = contents(end);
  ASSERT_EQ(train("--lr 0.1 --verify off --dump-params " + end.string()).exitCode, 0);
  EXPECT_FALSE(with.empty());
  EXPECT_EQ(with, contents(end));
}

TEST_F(Captured, DrawsThatCannotBeSwitchedOffLeaveItUnchecked) {
  write(R"(, "draws": "drawn")");
  const Answer answer = verify();
  EXPECT_EQ(answer.exitCode, 0) << answer.text;
  EXPECT_NE(answer.text.find("unchecked: "), std::string::npos) << answer.text;
  EXPECT_NE(train().text.find("PyTorch: unchecked: "), std::string::npos);
}

TEST_F(Captured, WantsAFolderWithAGolden) {
  EXPECT_EQ(run("verify", folder_.path()).exitCode, 2);
  EXPECT_EQ(run("verify " + (capture_ / "model.onnx").string(), folder_.path()).exitCode, 2);
  EXPECT_EQ(run("verify " + (folder_.path() / "nowhere").string(), folder_.path()).exitCode, 1);
  EXPECT_EQ(verify("--steps 0").exitCode, 2);
  EXPECT_EQ(verify("--init-from x.safetensors").exitCode, 2);
  fs::remove(capture_ / "golden.safetensors");
  fs::remove(capture_ / "capture.json");
  const Answer answer = verify();
  EXPECT_EQ(answer.exitCode, 1);
  EXPECT_NE(answer.text.find("neither losses nor gradients of PyTorch"), std::string::npos) << answer.text;
}

// The first number of a run that is not finite.
TEST(OnNaN, TellsTheFirstCauseAsJson) {
  const TemporaryFolder folder;
  const std::string train = "train " SS_SAMPLES "/digits/model.onnx --lr 1e30 --steps 6 --json ";
  const Answer blamed = run(train + "--on-nan blame", folder.path());
  const auto at = blamed.text.find(R"({"event":"nan",)");
  ASSERT_NE(at, std::string::npos) << blamed.text;
  const std::string event = blamed.text.substr(at, blamed.text.find('\n', at) - at);
  for (const char* key :
       {R"("step":1)", R"("first":{)", R"("instruction":)", R"("node":")", R"("op":")", R"("module":)", R"("source":)",
        R"("kind":"exploded weights since step 0")", R"("index":[)", R"("inputs":[{)", R"("rows":[)"})
    EXPECT_NE(event.find(key), std::string::npos) << key << " in " << event;
  EXPECT_NE(blamed.text.find(R"("step":5)"), std::string::npos) << "it goes on:\n" << blamed.text;
  const Answer stopped = run(train + "--on-nan stop", folder.path());
  EXPECT_EQ(stopped.exitCode, 1);
  EXPECT_NE(stopped.text.find(R"({"event":"nan",)"), std::string::npos) << stopped.text;
  EXPECT_EQ(stopped.text.find(R"("step":5)"), std::string::npos) << stopped.text;
  const Answer alerted = run("train " SS_SAMPLES "/digits/model.onnx --lr 1e30 --steps 6 --on-nan alert", folder.path());
  EXPECT_NE(alerted.text.find("exploded weights since step 0"), std::string::npos) << alerted.text;
  EXPECT_EQ(run(train + "--on-nan perhaps", folder.path()).exitCode, 2);
  EXPECT_EQ(run("train " SS_SAMPLES "/digits/model.onnx --steps 2 --json --on-nan stop", folder.path())
                .text.find(R"("event":"nan")"),
            std::string::npos);
}

}  // namespace
}  // namespace stepscope::testing

// Sessions on the device `cuda`, with the fake GPU in place of a real one: the same bits as on the emulated device, and
// faults that end a step with a typed error.
#include <gtest/gtest.h>

#include <string>

#include "tests/kernels/fake_gpu/use.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;
using testing::stateBits;
using testing::TestModel;

std::vector<TestModel> someModels() {
  std::vector<TestModel> models{testing::digits()};
  for (TestModel& model : testing::corpusCases({"mlp", "gpt2_dropout", "indexing", "resnet"}))
    models.push_back(std::move(model));
  return models;
}

class CudaModel : public ::testing::TestWithParam<TestModel> {};

TEST_P(CudaModel, TrainsToTheBitsOfTheEmulatedDevice) {
  ASSERT_TRUE(useFakeGpu("seed=5"));
  auto cuda = openSession(GetParam(), {{"device", "cuda"}}), emulated = openSession(GetParam(), {{"device", "emulated"}});
  ASSERT_TRUE(cuda && emulated);
  for (int step = 0; step < 2; ++step) {
    const auto a = cuda->step(), b = emulated->step();
    ASSERT_TRUE(a.has_value()) << a.error().message;
    ASSERT_TRUE(b.has_value()) << b.error().message;
    EXPECT_EQ(a->loss(), b->loss());
  }
  EXPECT_EQ(stateBits(*cuda) == stateBits(*emulated), true);
}

INSTANTIATE_TEST_SUITE_P(Models, CudaModel, ::testing::ValuesIn(someModels()),
                         [](const auto& info) { return info.param.name; });

// Products by the fake cuBLASLt, in float32 and as bfloat16: the losses of our own tiles, but for the last bits.
TEST(CudaSession, TrainsWithTheProductsOfALibrary) {
  setenv("STEPSCOPE_CUBLASLT", SS_FAKE_CUBLAS, 1);
  ASSERT_TRUE(useFakeGpu());
  for (const auto& [precision, tolerance] : {std::pair("fp32", 1e-5), std::pair("bf16", 1e-2)}) {
    auto library = openSession(testing::digits(), {{"device", "cuda:00000"}, {"precision", precision}}),
         tiles = openSession(testing::digits(), {{"device", "emulated"}, {"precision", precision}});
    ASSERT_TRUE(library && tiles);
    for (int step = 0; step < 3; ++step) {
      const auto a = library->step(), b = tiles->step();
      ASSERT_TRUE(a && b) << (a ? b : a).error().message;
      EXPECT_NEAR(a->loss(), b->loss(), tolerance * b->loss()) << precision;
    }
  }
  void* const found = dlopen(SS_FAKE_CUBLAS, RTLD_NOW | RTLD_NOLOAD);
  const auto products = found ? reinterpret_cast<std::int64_t (*)()>(dlsym(found, "fakeCublasProducts")) : nullptr;
  ASSERT_NE(products, nullptr);
  EXPECT_GE(products(), 12);  // in both types
  setenv("STEPSCOPE_CUBLASLT", "off", 1);
}

// A device keeps its name and its error until the program ends: each fault has a name of its own for the same GPU.
TEST(CudaSession, AFaultEndsTheStepWithATypedError) {
  const TestModel model = testing::digits();
  for (const auto& [orders, device, message] :
       {std::tuple("fail-launch=90", "cuda:00", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        std::tuple("lose-device=95", "cuda:000", "the device is lost: CUDA_ERROR_DEVICE_UNAVAILABLE")}) {
    ASSERT_TRUE(useFakeGpu(orders));
    auto session = openSession(model, {{"device", device}});
    ASSERT_TRUE(session);
    int steps = 0;
    for (; steps < 50; ++steps) {
      const auto step = session->step();
      if (step) continue;
      EXPECT_EQ(step.error().code, ErrorCode::kInternal);
      EXPECT_NE(step.error().message.find(message), std::string::npos) << step.error().message;
      break;
    }
    EXPECT_LT(steps, 50) << orders;
    const auto again = session->step();
    ASSERT_FALSE(again.has_value());
    EXPECT_NE(again.error().message.find(message), std::string::npos) << "the error stays: " << again.error().message;
  }
}

TEST(CudaSession, MemoryThatIsRefusedIsSaidBeforeTheFirstStep) {
  ASSERT_TRUE(useFakeGpu("memory=1000,others=400"));
  const TestModel model = testing::digits();
  auto session = Session::open(model.model, {}, {});
  ASSERT_TRUE(session.has_value());
  TrainOptions options;
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"data", model.data.string()}, {"loss", model.loss}, {"device", "cuda:0000"}})
    ASSERT_TRUE(applySetting(options, name, value, "test").has_value());
  ASSERT_TRUE((*session)->setOptions(options).has_value());
  const Status built = (*session)->build();  // what is planned may be looked at
  ASSERT_TRUE(built.has_value()) << built.error().message;
  const auto step = (*session)->step();
  ASSERT_FALSE(step.has_value());
  EXPECT_EQ(step.error().code, ErrorCode::kOutOfMemory);
  const std::string& message = step.error().message;
  EXPECT_NE(message.find("of device 'cuda:0000'"), std::string::npos) << message;
  EXPECT_NE(message.find(" bytes, the memory that it has free"), std::string::npos) << message;
  ASSERT_FALSE((*session)->alerts().empty());
  EXPECT_EQ((*session)->alerts().back().message(), message);
}

}  // namespace
}  // namespace stepscope

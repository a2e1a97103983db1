// Feeds a model with arrays of this program, of two sizes, and changes an option on the way. The task: which quarter of an
// image is bright.
//
//   feed MODEL.onnx     inputs image, float32[batch, 1, 8, 8], and label, int64[batch]: app/samples/digits/model.onnx
#include <stepscope.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace {

void check(ss_error* error) {
  if (!error) return;
  std::fprintf(stderr, "error %d: %s\n", ss_error_code(error), ss_error_message(error));
  ss_error_free(error);
  std::exit(EXIT_FAILURE);
}

struct Close {
  void operator()(ss_session* session) const { ss_close(session); }
};

template <typename T>
ss_tensor tensorOf(int32_t dtype, const std::vector<T>& numbers, const std::vector<int64_t>& dims) {
  return {sizeof(ss_tensor), dtype, dims.data(), dims.size(), numbers.data(), numbers.size() * sizeof(T)};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: feed MODEL.onnx\n"), 2;
  const char* const names[] = {"optimizer", "lr"};
  const char* const values[] = {"sgd", "0.1"};
  ss_session* opened = nullptr;
  check(ss_open(argv[1], names, values, 2, &opened));
  const std::unique_ptr<ss_session, Close> session(opened);

  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    // Every fifth batch is larger: that makes a second plan, which is kept.
    const int64_t rows = step % 5 == 4 ? 16 : 8;
    const std::vector<int64_t> imageDims{rows, 1, 8, 8}, labelDims{rows};
    std::vector<float> images;
    std::vector<int64_t> labels;
    for (int64_t row = 0; row < rows; ++row) {
      labels.push_back((row + step) % 4);
      for (int64_t pixel = 0; pixel < 64; ++pixel)
        images.push_back(pixel / 32 * 2 + pixel % 8 / 4 == labels.back() ? 1.0F : 0.0F);
    }
    const ss_tensor inputs[] = {tensorOf(SS_FLOAT32, images, imageDims), tensorOf(SS_INT64, labels, labelDims)};
    const ss_tensor* const tensors[] = {&inputs[0], &inputs[1]};
    const char* const inputNames[] = {"image", "label"};
    check(ss_feed(session.get(), inputNames, tensors, 2));
    if (step == 30) check(ss_set(session.get(), "pass.fuse_epilogue", "off"));
    ss_step_record record{};
    record.size = sizeof(record);
    check(ss_step(session.get(), &record));
    if (step == 0) first = record.loss;
    last = record.loss;
  }
  std::printf("loss %.6f -> %.6f\n", first, last);
  return last < first / 10 ? EXIT_SUCCESS : EXIT_FAILURE;
}

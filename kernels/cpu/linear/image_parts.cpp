#include "kernels/cpu/linear/image_parts.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "kernels/cpu/dnnl_support.h"
#include "kernels/fixed_parts.h"

namespace stepscope::cpu {
namespace {

class ImageParts final : public Kernel {
 public:
  ImageParts(std::vector<ImagePart> parts, const KernelSpec& spec, std::vector<std::size_t> inputBytes,
             std::size_t outputBytes)
      : inputBytes_(std::move(inputBytes)),
        outputBytes_(outputBytes),
        elements_(elementCount(spec.outputs[0].dims)),
        threads_(std::min<int>(spec.threads, static_cast<int>(parts.size()))) {
    WorkspaceLayout layout;
    for (ImagePart& part : parts) {
      Piece piece{std::move(part.kernel), part.first, 0, 0, {}, {}, {}};
      piece.workspace = layout.add(piece.kernel->workspaceBytes());
      if (outputBytes_ == 0) piece.sum = layout.add(static_cast<std::size_t>(elements_) * sizeof(float));
      piece.inputs.resize(spec.inputs.size());
      piece.outputs.resize(1);
      pieces_.push_back(std::move(piece));
    }
    bytes_ = layout.size();
  }

  std::size_t workspaceBytes() const override { return bytes_; }

  Status run(const KernelCall& call) override {
    const int count = static_cast<int>(pieces_.size());
    std::atomic<bool> full = false;
#pragma omp parallel for schedule(static) num_threads(threads_)
    for (int p = 0; p < count; ++p) {
      Piece& piece = pieces_[static_cast<std::size_t>(p)];
      for (std::size_t i = 0; i < piece.inputs.size(); ++i) {
        auto* data = static_cast<std::byte*>(call.inputs[i].data);
        piece.inputs[i].dtype = call.inputs[i].dtype;
        piece.inputs[i].data = data ? data + static_cast<std::size_t>(piece.first) * inputBytes_[i] : nullptr;
      }
      piece.outputs[0].dtype = call.outputs[0].dtype;
      piece.outputs[0].data = outputBytes_ == 0 ? call.workspace.data() + piece.sum
                                                : static_cast<std::byte*>(call.outputs[0].data) +
                                                      static_cast<std::size_t>(piece.first) * outputBytes_;
      KernelCall own;
      own.inputs = piece.inputs;
      own.outputs = piece.outputs;
      own.workspace = call.workspace.subspan(piece.workspace, piece.kernel->workspaceBytes());
      try {
        piece.done = piece.kernel->run(own);
      } catch (const std::bad_alloc&) {  // none leaves the region
        full = true;
      }
    }
    if (full) return fail(ErrorCode::kOutOfMemory, "convolution: no memory for an error; expected some");
    for (Piece& piece : pieces_) SS_TRY(piece.done);
    if (outputBytes_ == 0) addUp(call);
    return {};
  }
  std::string implementation() const override {
    return pieces_[0].kernel->implementation() + " in " + std::to_string(pieces_.size()) + " fixed parts";
  }
  Determinism determinism() const override {
    return Determinism::fixed("every part of the batch is computed by one thread; parts depend on extents alone");
  }

 private:
  struct Piece {
    std::unique_ptr<Kernel> kernel;
    std::int64_t first;
    std::size_t workspace, sum;  // in the workspace of the call
    std::vector<TensorView> inputs, outputs;
    Status done;
  };

  void addUp(const KernelCall& call) const {
    auto* to = static_cast<float*>(call.outputs[0].data);
    const std::byte* room = call.workspace.data();
#pragma omp parallel for schedule(static) num_threads(threads_) if (elements_ > 16384)
    for (std::int64_t i = 0; i < elements_; ++i) {
      float sum = 0;
      for (const Piece& piece : pieces_) sum += reinterpret_cast<const float*>(room + piece.sum)[i];
      to[i] = sum;
    }
  }

  std::vector<std::size_t> inputBytes_;
  std::size_t outputBytes_;
  std::int64_t elements_;
  int threads_;
  std::size_t bytes_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace

std::int64_t imageParts(std::int64_t batch, std::int64_t pixels) {
  constexpr std::int64_t kPixels = 90;  // of a part: what a weight is used for is then worth reading it once more
  return std::clamp<std::int64_t>(batch * pixels / kPixels, 1, std::min<std::int64_t>(batch, kFixedParts));
}

std::unique_ptr<Kernel> makeImageParts(std::vector<ImagePart> parts, const KernelSpec& spec,
                                       std::vector<std::size_t> inputBytes, std::size_t outputBytes) {
  return std::make_unique<ImageParts>(std::move(parts), spec, std::move(inputBytes), outputBytes);
}

}  // namespace stepscope::cpu

// Convolution and its gradients on oneDNN, for x and y in plain or nChw16c layout and plain weights.
//
// 1x1 kernels without stride on plain tensors are matrix products per image and need no other layout. The rest goes through
// the convolution primitive, which takes nChw16c as it is and chooses layouts of its own for plain operands and weights;
// reorders into workspace memory bridge the two. bfloat16 goes through the primitive too, where the processor multiplies it:
// in nhwc, as its tiles (AMX) want it. The weight
// gradient of one channel per group is ours (depthwise.h): the primitive has no vector code for most windows.
#include <array>
#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/cpu/dnnl_support.h"
#include "kernels/cpu/linear/bfloat16_products.h"
#include "kernels/cpu/linear/depthwise.h"
#include "kernels/cpu/linear/image_parts.h"
#include "kernels/cpu/linear/linear_kernels.h"
#include "kernels/fixed_parts.h"
#include "kernels/window.h"

namespace stepscope::cpu {
namespace {

using dnnl::memory;

enum class Pass { kForward, kInputGradient, kWeightGradient };

// Which operand of the node plays x, w and y of the convolution. The one that is computed is output 0.
struct Roles {
  ConvGeometry geometry;
  Pass pass = Pass::kForward;
  int x = -1, w = -1, y = -1;  // input numbers; -1 = output 0
  int bias = -1;               // input number; -1 = none
  Layout xLayout = Layout::kPlain, yLayout = Layout::kPlain;
  bool winograd =
      false;  // attribute `winograd` (engine/passes/choose_winograd.h): Winograd's algorithm where there is a primitive
  DType dtype = DType::kF32;  // of x, w and y: float32 or bfloat16
  DType biasType = DType::kF32;
  int threads = 1;
};

void* addressOf(const KernelCall& call, int role) {
  return role < 0 ? call.outputs[0].data : call.inputs[static_cast<std::size_t>(role)].data;
}

// data[n, c, i] = or += bias[c]
template <bool kAdd>
void spreadBias(const float* bias, float* data, std::int64_t batch, std::int64_t channels, std::int64_t size, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t row = 0; row < batch * channels; ++row) {
    float* to = data + row * size;
    const float value = bias[row % channels];
    for (std::int64_t i = 0; i < size; ++i) to[i] = kAdd ? to[i] + value : value;
  }
}

// data[n, c / 16, i, c % 16] += bias[c]
void addBias16(const float* bias, float* data, std::int64_t batch, std::int64_t channels, std::int64_t size, int threads) {
  const std::int64_t blocks = channels / kLayoutLanes;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t row = 0; row < batch * blocks; ++row)
    for (std::int64_t i = 0; i < size; ++i)
      for (std::int64_t lane = 0; lane < kLayoutLanes; ++lane)
        data[(row * size + i) * kLayoutLanes + lane] += bias[row % blocks * kLayoutLanes + lane];
}

class PointwiseKernel final : public Kernel {
 public:
  // `fixed`: every image is computed by one thread, whatever their number is.
  PointwiseKernel(Roles roles, bool fixed) : r_(std::move(roles)), fixed_(fixed && imagesApart()) {}

  Status run(const KernelCall& call) override {
    const ThreadScope scope(fixed_ ? 1 : r_.threads);  // of the routine; the regions here name theirs
    const ConvGeometry& g = r_.geometry;
    const std::int64_t size = g.inSize(), c = g.inChannels, m = g.outChannels;
    auto* x = static_cast<float*>(addressOf(call, r_.x));
    auto* w = static_cast<float*>(addressOf(call, r_.w));
    auto* y = static_cast<float*>(addressOf(call, r_.y));
    const float start = r_.bias >= 0 ? 1.0f : 0.0f;
    const bool forward = r_.pass == Pass::kForward;
    if (r_.bias >= 0)
      spreadBias<false>(static_cast<const float*>(addressOf(call, r_.bias)), forward ? y : x, g.batch, forward ? m : c, size,
                        r_.threads);
    // Images of one pixel are the rows of one matrix.
    DnnlFailure failure;
    if (size == 1) {
      if (forward)
        failure.note(dnnl_sgemm('N', 'T', g.batch, m, c, 1, x, c, w, c, start, y, m));
      else if (r_.pass == Pass::kInputGradient)
        failure.note(dnnl_sgemm('N', 'N', g.batch, c, m, 1, y, m, w, c, start, x, c));
      else
        failure.note(dnnl_sgemm('T', 'N', m, c, g.batch, 1, y, m, x, c, 0, w, c));
      return failure.status("convolution");
    }
    const auto image = [&](std::int64_t n) {
      float* xn = x + n * c * size;
      float* yn = y + n * m * size;
      if (forward)
        failure.note(dnnl_sgemm('N', 'N', m, size, c, 1, w, c, xn, size, start, yn, size));
      else if (r_.pass == Pass::kInputGradient)
        failure.note(dnnl_sgemm('T', 'N', c, size, m, 1, w, c, yn, size, start, xn, size));
      else
        failure.note(dnnl_sgemm('N', 'T', m, c, size, 1, yn, size, xn, size, n == 0 ? 0.0f : 1.0f, w, c));
    };
    if (!fixed_ && (r_.pass == Pass::kWeightGradient || g.batch < r_.threads)) {
      for (std::int64_t n = 0; n < g.batch; ++n) image(n);
    } else {
#pragma omp parallel for schedule(static) num_threads(r_.threads)
      for (std::int64_t n = 0; n < g.batch; ++n) image(n);
    }
    return failure.status("convolution");
  }
  std::string implementation() const override { return "onednn sgemm per image"; }
  Determinism determinism() const override {
    return fixed_ ? Determinism::fixed("every image is computed by one thread") : libraryOrder();
  }

 private:
  // Whether images share no sum, and are not the rows of one matrix.
  bool imagesApart() const { return r_.pass != Pass::kWeightGradient && r_.geometry.inSize() > 1; }

  Roles r_;
  bool fixed_;
};

memory::data_type typeOf(DType dtype) { return dtype == DType::kBF16 ? memory::data_type::bf16 : memory::data_type::f32; }

memory::desc descOf(Layout layout, const memory::dims& dims, DType dtype) {
  if (layout == Layout::kPlain) {
    memory::dims strides(dims.size(), 1);
    for (std::size_t i = dims.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * dims[i + 1];
    return memory::desc(dims, typeOf(dtype), strides);
  }
  constexpr std::array blocked{memory::format_tag::nCw16c, memory::format_tag::nChw16c, memory::format_tag::nCdhw16c},
      last{memory::format_tag::nwc, memory::format_tag::nhwc, memory::format_tag::ndhwc};
  return memory::desc(dims, typeOf(dtype), (layout == Layout::kChannels16 ? blocked : last)[dims.size() - 3]);
}

class ConvKernel final : public Kernel {
 public:
  // `keepLayouts`: the primitive must work on nChw16c operands as they are.
  ConvKernel(Roles roles, bool keepLayouts) : r_(std::move(roles)), stream_(dnnlEngine()) {
    const ConvGeometry& g = r_.geometry;
    memory::dims x{g.batch, g.inChannels}, y{g.batch, g.outChannels}, w, strides, dilates, padBegin, padEnd;
    if (g.groups > 1)
      w = {g.groups, g.outChannels / g.groups, g.inChannels / g.groups};
    else
      w = {g.outChannels, g.inChannels};
    for (std::size_t i = 0; i < g.in.size(); ++i) {
      const WindowAxis& a = g.window.axes[i];
      x.push_back(g.in[i]);
      y.push_back(g.out[i]);
      w.push_back(a.kernel);
      strides.push_back(a.stride);
      dilates.push_back(a.dilation - 1);
      padBegin.push_back(a.padBegin);
      // What the extents imply; less than the attribute says where the last window stops short, or output_padding extends x.
      padEnd.push_back((g.out[i] - 1) * a.stride + a.extent() - g.in[i] - a.padBegin);
    }
    const auto any = [&](const memory::dims& dims) { return memory::desc(dims, typeOf(r_.dtype), memory::format_tag::any); };
    const memory::desc xGiven = descOf(r_.xLayout, x, r_.dtype), yGiven = descOf(r_.yLayout, y, r_.dtype),
                       wGiven = descOf(Layout::kPlain, w, r_.dtype);
    const memory::desc xWanted = keepLayouts && r_.xLayout != Layout::kPlain ? xGiven : any(x);
    const memory::desc yWanted = keepLayouts && r_.yLayout != Layout::kPlain ? yGiven : any(y);
    const dnnl::algorithm algorithm =
        r_.winograd ? dnnl::algorithm::convolution_winograd : dnnl::algorithm::convolution_direct;
    const dnnl::primitive_attr attr = userScratchpad();
    const bool biased = r_.bias >= 0 && r_.pass == Pass::kForward;
    const memory::desc biasDesc = descOf(Layout::kPlain, {g.outChannels}, r_.biasType);
    const auto forwardDesc =
        biased ? dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, algorithm, xWanted, any(w), biasDesc,
                                                 yWanted, strides, dilates, padBegin, padEnd)
               : dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, algorithm, xWanted, any(w), yWanted,
                                                 strides, dilates, padBegin, padEnd);
    const dnnl::convolution_forward::primitive_desc forward(forwardDesc, attr, dnnlEngine());
    if (r_.pass == Pass::kForward) {
      const memory xIn = bring(xGiven, forward.src_desc(), r_.x), wIn = bring(wGiven, forward.weights_desc(), r_.w);
      auto [yOut, back] = carry(forward.dst_desc(), yGiven, r_.y);
      main_.arguments = {{DNNL_ARG_SRC, xIn}, {DNNL_ARG_WEIGHTS, wIn}, {DNNL_ARG_DST, yOut}};
      if (biased) main_.arguments.emplace(DNNL_ARG_BIAS, bind(biasDesc, r_.bias));
      finish(dnnl::convolution_forward(forward), forward, std::move(back));
    } else if (r_.pass == Pass::kInputGradient) {
      const dnnl::convolution_backward_data::primitive_desc desc(
          dnnl::convolution_backward_data::desc(algorithm, xWanted, any(w), yWanted, strides, dilates, padBegin, padEnd),
          attr, dnnlEngine(), forward);
      const memory yIn = bring(yGiven, desc.diff_dst_desc(), r_.y), wIn = bring(wGiven, desc.weights_desc(), r_.w);
      auto [xOut, back] = carry(desc.diff_src_desc(), xGiven, r_.x);
      main_.arguments = {{DNNL_ARG_DIFF_DST, yIn}, {DNNL_ARG_WEIGHTS, wIn}, {DNNL_ARG_DIFF_SRC, xOut}};
      finish(dnnl::convolution_backward_data(desc), desc, std::move(back));
    } else {
      const dnnl::convolution_backward_weights::primitive_desc desc(
          dnnl::convolution_backward_weights::desc(algorithm, xWanted, any(w), yWanted, strides, dilates, padBegin, padEnd),
          attr, dnnlEngine(), forward);
      const memory yIn = bring(yGiven, desc.diff_dst_desc(), r_.y), xIn = bring(xGiven, desc.src_desc(), r_.x);
      auto [wOut, back] = carry(desc.diff_weights_desc(), wGiven, r_.w);
      main_.arguments = {{DNNL_ARG_DIFF_DST, yIn}, {DNNL_ARG_SRC, xIn}, {DNNL_ARG_DIFF_WEIGHTS, wOut}};
      finish(dnnl::convolution_backward_weights(desc), desc, std::move(back));
    }
  }

  std::size_t workspaceBytes() const override { return layout_.size(); }

  Status run(const KernelCall& call) override {
    const ThreadScope scope(r_.threads);
    for (Operand& operand : operands_) operand.object.set_data_handle(addressOf(call, operand.role), stream_);
    for (Region& region : regions_) region.object.set_data_handle(call.workspace.data() + region.offset, stream_);
    for (Launch& launch : before_) SS_TRY(execute(launch.primitive, stream_, launch.arguments));
    SS_TRY(execute(main_.primitive, stream_, main_.arguments));
    for (Launch& launch : after_) SS_TRY(execute(launch.primitive, stream_, launch.arguments));
    SS_TRY(wait(stream_));
    if (r_.bias >= 0 && r_.pass == Pass::kInputGradient) {
      const auto add = r_.xLayout == Layout::kPlain ? spreadBias<true> : addBias16;
      add(static_cast<const float*>(addressOf(call, r_.bias)), static_cast<float*>(addressOf(call, r_.x)), r_.geometry.batch,
          r_.geometry.inChannels, r_.geometry.inSize(), r_.threads);
    }
    return {};
  }
  std::string implementation() const override { return implementation_; }
  Determinism determinism() const override { return libraryOrder(); }

 private:
  struct Operand {
    memory object;
    int role;
  };
  struct Region {
    memory object;
    std::size_t offset;
  };

  memory bind(const memory::desc& desc, int role) {
    operands_.push_back({placeholder(desc), role});
    return operands_.back().object;
  }
  memory reserve(const memory::desc& desc) {
    regions_.push_back({placeholder(desc), layout_.add(desc.get_size())});
    return regions_.back().object;
  }
  Launch reorder(const memory& from, const memory& to) {
    const dnnl::reorder::primitive_desc desc(from, to, userScratchpad());
    Launch launch{dnnl::reorder(desc), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}};
    if (desc.scratchpad_desc().get_size() > 0)
      launch.arguments.emplace(DNNL_ARG_SCRATCHPAD, reserve(desc.scratchpad_desc()));
    return launch;
  }
  // An input in the layout the primitive wants.
  memory bring(const memory::desc& lies, const memory::desc& wanted, int role) {
    const memory given = bind(lies, role);
    if (lies == wanted) return given;
    const memory blocked = reserve(wanted);
    before_.push_back(reorder(given, blocked));
    return blocked;
  }
  // The output in the primitive's layout, and the launches that bring it to the one of the call.
  std::pair<memory, std::vector<Launch>> carry(const memory::desc& made, const memory::desc& wanted, int role) {
    const memory result = bind(wanted, role);
    if (wanted == made) return {result, {}};
    const memory blocked = reserve(made);
    return {blocked, {reorder(blocked, result)}};
  }
  template <typename Description>
  void finish(dnnl::primitive primitive, const Description& desc, std::vector<Launch> back) {
    main_.primitive = std::move(primitive);
    if (desc.scratchpad_desc().get_size() > 0) main_.arguments.emplace(DNNL_ARG_SCRATCHPAD, reserve(desc.scratchpad_desc()));
    after_ = std::move(back);
    implementation_ = implementationName(desc.impl_info_str());
  }

  Roles r_;
  dnnl::stream stream_;
  WorkspaceLayout layout_;
  std::vector<Operand> operands_;
  std::vector<Region> regions_;
  std::vector<Launch> before_, after_;
  Launch main_;
  std::string implementation_;
};

bool isPointwise(const ConvGeometry& g) {
  if (g.groups != 1 || g.in != g.out) return false;
  for (const WindowAxis& a : g.window.axes)
    if (a.kernel != 1 || a.stride != 1 || a.padBegin != 0) return false;
  return true;
}

bool isPlain(const Roles& roles) { return roles.xLayout == Layout::kPlain && roles.yLayout == Layout::kPlain; }

// The primitive in bfloat16. Errors: kUnsupported where the processor does not multiply it.
Result<std::unique_ptr<Kernel>> makeInBFloat16(const KernelSpec& spec, const Roles& roles) {
  const auto refuse = [&](const char* what) { return unsupported(spec.op + ": " + what + " in bfloat16"); };
  if (!multipliesBFloat16()) return refuse("no products of this processor");
  if (FixedParts::here()) return refuse("sums that are cut by size alone");
  if (roles.bias >= 0 && roles.pass != Pass::kForward) return refuse("a bias behind the primitive");
  std::unique_ptr<Kernel> found;
  for (const bool keep : {true, false}) {
    if (keep && isPlain(roles)) continue;
    auto kernel = guardDnnl(spec.op, roles.threads,
                            [&]() -> Result<std::unique_ptr<Kernel>> { return std::make_unique<ConvKernel>(roles, keep); });
    if (!kernel) continue;
    const std::string name = (*kernel)->implementation();
    if (name.find("amx") != std::string::npos) return kernel;  // worth a reorder
    if (!found && name.find("bf16", name.find(':')) != std::string::npos) found = std::move(*kernel);
  }
  if (found) return found;
  return refuse("no products of this processor");
}

// By matrix products where that is possible, else by the convolution primitive.
Result<std::unique_ptr<Kernel>> makeWhole(const KernelSpec& spec, Roles roles) {
  const bool plain = isPlain(roles);
  if (plain && isPointwise(roles.geometry))
    return std::unique_ptr<Kernel>(std::make_unique<PointwiseKernel>(std::move(roles), FixedParts::here()));
  if (roles.winograd) {
    auto kernel = guardDnnl(spec.op, roles.threads, [&]() -> Result<std::unique_ptr<Kernel>> {
      return std::make_unique<ConvKernel>(roles, !plain);
    });
    if (kernel) return kernel;
    roles.winograd = false;
  }
  if (!plain) {
    // Where only its plain loops would take the layout, the primitive works on reordered copies.
    auto kept = guardDnnl(spec.op, roles.threads,
                          [&]() -> Result<std::unique_ptr<Kernel>> { return std::make_unique<ConvKernel>(roles, true); });
    if (kept && (*kept)->implementation().find("ref") == std::string::npos) return kept;
  }
  return guardDnnl(spec.op, roles.threads, [&]() -> Result<std::unique_ptr<Kernel>> {
    return std::make_unique<ConvKernel>(std::move(roles), false);
  });
}

// The same for parts of the images, each by one thread, where sums are to be cut by size alone.
Result<std::unique_ptr<Kernel>> makeInParts(const KernelSpec& spec, const Roles& roles, std::int64_t parts) {
  const ConvGeometry& g = roles.geometry;
  std::vector<ImagePart> made;
  for (std::int64_t p = 0; p < parts; ++p) {
    const std::int64_t first = g.batch * p / parts;
    Roles own = roles;
    own.geometry.batch = g.batch * (p + 1) / parts - first;
    own.threads = 1;
    SS_ASSIGN(auto kernel, makeWhole(spec, std::move(own)));
    made.push_back({std::move(kernel), first});
  }
  const auto imageBytes = [](std::int64_t channels, std::int64_t size) {
    return static_cast<std::size_t>(channels * size) * sizeof(float);
  };
  const std::size_t x = imageBytes(g.inChannels, g.inSize()), y = imageBytes(g.outChannels, g.outSize());
  std::vector<std::size_t> inputs(spec.inputs.size(), 0);
  if (roles.x >= 0) inputs[static_cast<std::size_t>(roles.x)] = x;
  if (roles.y >= 0) inputs[static_cast<std::size_t>(roles.y)] = y;
  return makeImageParts(std::move(made), spec, std::move(inputs), roles.x < 0 ? x : roles.y < 0 ? y : 0);
}

Result<std::unique_ptr<Kernel>> make(const KernelSpec& spec, Roles roles) {
  roles.dtype = spec.outputs[0].dtype;
  if (roles.bias >= 0) roles.biasType = spec.inputs[static_cast<std::size_t>(roles.bias)].dtype;
  const bool low = roles.dtype == DType::kBF16;
  for (const OperandSpec& operand : {spec.inputs[0], spec.inputs[1], spec.outputs[0]})
    if (operand.dtype != roles.dtype || (!low && roles.dtype != DType::kF32))
      return unsupported(spec.op + ": the fast kernel takes float32 or bfloat16");
  if (roles.biasType != DType::kF32 && roles.biasType != roles.dtype)
    return unsupported(spec.op + ": a bias of another type");
  const ConvGeometry& g = roles.geometry;
  if (g.batch == 0 || g.inChannels == 0 || g.outChannels == 0 || g.inSize() == 0 || g.outSize() == 0)
    return unsupported(spec.op + ": an extent is 0; falls back to the reference kernel");
  if (roles.bias >= 0 && elementCount(spec.inputs[static_cast<std::size_t>(roles.bias)].dims) !=
                             (roles.pass == Pass::kForward ? g.outChannels : g.inChannels))
    return invalid(spec.op + ": bias of shape " + dimsText(spec.inputs[static_cast<std::size_t>(roles.bias)].dims) +
                   "; expected one per channel");
  // oneDNN cuts the sums of a weight gradient by its threads, so their number stays whatever the work is.
  const double flops = 2.0 * static_cast<double>(g.batch * g.outSize()) * static_cast<double>(g.kernelSize()) *
                       static_cast<double>(g.outChannels) * static_cast<double>(g.inChannels / g.groups);
  roles.threads = roles.pass == Pass::kWeightGradient ? spec.threads : threadsForFlops(flops, spec.threads);
  const auto layoutOf = [&](int role) {
    return role < 0 ? spec.outputs[0].layout : spec.inputs[static_cast<std::size_t>(role)].layout;
  };
  roles.xLayout = layoutOf(roles.x);
  roles.yLayout = layoutOf(roles.y);
  roles.winograd = spec.attrs.integer("winograd", 0) != 0;
  if (!isPlain(roles) && (layoutOf(roles.w) != Layout::kPlain || g.in.size() > 3))
    return unsupported(spec.op + ": takes plain weights and up to three spatial axes");
  if (low) return makeInBFloat16(spec, roles);
  const auto last = [&](int role) { return layoutOf(role) == Layout::kChannelsLast; };
  if ((last(roles.x) || last(roles.y)) &&
      ((roles.bias >= 0 && roles.pass == Pass::kInputGradient) || (roles.pass == Pass::kWeightGradient && isDepthwise(g))))
    return unsupported(spec.op + ": channels that lie last");
  if (roles.pass == Pass::kWeightGradient && isDepthwise(g))
    return makeDepthwiseWeightGrad(
        g, {static_cast<std::size_t>(roles.x), static_cast<std::size_t>(roles.y), roles.xLayout, roles.yLayout},
        spec.threads);
  // Images of a 1x1 kernel are apart as they are; little work is for one thread.
  const bool apart = isPlain(roles) && isPointwise(g) && roles.pass != Pass::kWeightGradient && g.inSize() > 1;
  const std::int64_t parts =
      FixedParts::here() && !apart && flops >= 2 * kFlopsPerThread ? imageParts(g.batch, g.outSize()) : 1;
  return parts > 1 ? makeInParts(spec, roles, parts) : makeWhole(spec, std::move(roles));
}

int biasOf(const KernelSpec& spec) { return spec.inputPresent(2) ? 2 : -1; }

}  // namespace

Result<std::unique_ptr<Kernel>> makeConv(const KernelSpec& spec) {
  SS_ASSIGN(ConvGeometry g, convGeometry(spec.attrs, spec.inputs[0].dims, spec.inputs[1].dims, spec.outputs[0].dims));
  return make(spec, {.geometry = std::move(g), .pass = Pass::kForward, .x = 0, .w = 1, .y = -1, .bias = biasOf(spec)});
}

Result<std::unique_ptr<Kernel>> makeConvInputGrad(const KernelSpec& spec) {
  SS_ASSIGN(ConvGeometry g, convGeometry(spec.attrs, spec.outputs[0].dims, spec.inputs[1].dims, spec.inputs[0].dims));
  return make(spec, {.geometry = std::move(g), .pass = Pass::kInputGradient, .x = -1, .w = 1, .y = 0});
}

Result<std::unique_ptr<Kernel>> makeConvWeightGrad(const KernelSpec& spec) {
  SS_ASSIGN(ConvGeometry g, convGeometry(spec.attrs, spec.inputs[1].dims, spec.outputs[0].dims, spec.inputs[0].dims));
  return make(spec, {.geometry = std::move(g), .pass = Pass::kWeightGradient, .x = 1, .w = -1, .y = 0});
}

Result<std::unique_ptr<Kernel>> makeConvTranspose(const KernelSpec& spec) {
  SS_ASSIGN(ConvGeometry g,
            convTransposeGeometry(spec.attrs, spec.inputs[0].dims, spec.inputs[1].dims, spec.outputs[0].dims));
  return make(spec, {.geometry = std::move(g), .pass = Pass::kInputGradient, .x = -1, .w = 1, .y = 0, .bias = biasOf(spec)});
}

Result<std::unique_ptr<Kernel>> makeConvTransposeInputGrad(const KernelSpec& spec) {
  SS_ASSIGN(ConvGeometry g,
            convTransposeGeometry(spec.attrs, spec.outputs[0].dims, spec.inputs[1].dims, spec.inputs[0].dims));
  return make(spec, {.geometry = std::move(g), .pass = Pass::kForward, .x = 0, .w = 1, .y = -1});
}

Result<std::unique_ptr<Kernel>> makeConvTransposeWeightGrad(const KernelSpec& spec) {
  SS_ASSIGN(ConvGeometry g,
            convTransposeGeometry(spec.attrs, spec.inputs[1].dims, spec.outputs[0].dims, spec.inputs[0].dims));
  return make(spec, {.geometry = std::move(g), .pass = Pass::kWeightGradient, .x = 0, .w = -1, .y = 1});
}

}  // namespace stepscope::cpu

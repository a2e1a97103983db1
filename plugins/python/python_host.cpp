// SPDX-License-Identifier: Apache-2.0
//
// The plugin: ops Aten, Function and Gradient of domain stepscope.python, whose kernels copy operands into shared memory and
// let the child process compute (host_process.h).
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "plugins/abi/stepscope_plugin.h"
#include "plugins/python/host_process.h"
#include "plugins/python/shape_rules.h"

namespace {

using stepscope::python::HostProcess;
using stepscope::python::inferGradient;
using stepscope::python::inferResults;
using stepscope::python::quoted;

constexpr const char* kDomain = "stepscope.python";

// -------------------------------------------------------------------------------------------------------------- gradient

bool isFloat(std::int32_t dtype) {
  return dtype == SSP_FLOAT32 || dtype == SSP_FLOAT64 || dtype == SSP_FLOAT16 || dtype == SSP_BFLOAT16;
}

// Gradient(dy of the floating results, inputs) → gradients of the inputs that need one; the forward pass runs again in it,
// so that nothing of it has to be kept.
ssp_status emitGradient(const ssp_op* op, ssp_gradient_context* g) {
  std::vector<ssp_value> inputs, results;
  std::vector<std::int64_t> arriving, wanted;
  for (std::uint32_t o = 0; o < g->output_count; ++o)
    if (const ssp_value y = g->y(g, o); y != 0 && isFloat(g->dtype(g, y))) {
      inputs.push_back(g->dy(g, o));
      arriving.push_back(o);
    }
  for (std::uint32_t i = 0; i < g->input_count; ++i) {
    inputs.push_back(g->x(g, i));
    if (g->needs(g, i)) wanted.push_back(i);
  }
  if (wanted.empty()) return SSP_OK;
  std::vector<ssp_attr> attrs{ssp_int_attr("function", std::strcmp(op->name, "Function") == 0 ? 1 : 0),
                              ssp_ints_attr("arriving", arriving.data(), arriving.size()),
                              ssp_ints_attr("wanted", wanted.data(), wanted.size())};
  for (const char* name : {"call", "arguments", "file", "module"})
    if (const ssp_attr* attr = g->attr(g, name); attr != nullptr) attrs.push_back(*attr);
  results.resize(wanted.size());
  const ssp_status emitted =
      g->emit(g, kDomain, "Gradient", inputs.data(), static_cast<std::uint32_t>(inputs.size()), attrs.data(),
              static_cast<std::uint32_t>(attrs.size()), results.data(), static_cast<std::uint32_t>(results.size()));
  if (emitted != SSP_OK) return emitted;
  for (std::size_t k = 0; k < wanted.size(); ++k) g->set_gradient(g, static_cast<std::uint32_t>(wanted[k]), results[k]);
  return SSP_OK;
}

// --------------------------------------------------------------------------------------------------------------- kernels

std::size_t bytesOf(const ssp_operand& operand) {
  std::size_t width = 0;
  switch (operand.dtype) {
    case SSP_UINT8:
    case SSP_INT8:
    case SSP_BOOL: width = 1; break;
    case SSP_UINT16:
    case SSP_INT16:
    case SSP_FLOAT16:
    case SSP_BFLOAT16: width = 2; break;
    case SSP_FLOAT32:
    case SSP_INT32:
    case SSP_UINT32: width = 4; break;
    case SSP_FLOAT64:
    case SSP_INT64:
    case SSP_UINT64: width = 8; break;
    default: return 0;
  }
  for (std::uint32_t axis = 0; axis < operand.rank; ++axis) width *= static_cast<std::size_t>(operand.dims[axis]);
  return width;
}

std::string listed(const ssp_attr* attr) {
  std::string json = "[";
  for (std::uint64_t i = 0; attr != nullptr && i < attr->count; ++i)
    json += (i == 0 ? "" : ",") + std::to_string(attr->ints[i]);
  return json + "]";
}

// One node: where its operands lie in shared memory, and how it is described to the host.
class Node {
 public:
  ~Node() {
    HostProcess::instance().forget(known_);
    for (const std::size_t offset : blocks_) HostProcess::instance().release(offset);
  }

  // Empty when all is well, else what is wrong.
  std::string make(const ssp_kernel& kernel, ssp_kernel_context* c) {
    const bool gradient = std::strcmp(kernel.op, "Gradient") == 0;
    const auto text = [&](const char* name) {
      const ssp_attr* attr = c->attr(c, name);
      return std::string(attr != nullptr && attr->s != nullptr ? attr->s : "");
    };
    const ssp_attr* marked = gradient ? c->attr(c, "function") : nullptr;
    const bool function = marked != nullptr ? marked->i != 0 : std::strcmp(kernel.op, "Function") == 0;
    definition_ = std::string("{\"kind\":\"") + (function ? "function" : "aten") +
                  "\",\"call\":" + quoted(text("call").c_str()) + ",\"file\":" + quoted(text("file").c_str()) +
                  ",\"module\":" + quoted(text("module").c_str()) + ",\"arguments\":" + text("arguments") +
                  ",\"backward\":" + (gradient ? "true" : "false") + ",\"threads\":" + std::to_string(c->threads) +
                  ",\"wanted\":" + listed(gradient ? c->attr(c, "wanted") : nullptr) +
                  ",\"arriving\":" + listed(gradient ? c->attr(c, "arriving") : nullptr);
    if (!operands("inputs", c->inputs, c->input_count) || !operands("outputs", c->outputs, c->output_count))
      return "no shared memory for its operands";
    return HostProcess::instance().define(known_, definition_);
  }

  std::string run(const ssp_kernel_call* call) {
    HostProcess& host = HostProcess::instance();
    for (std::uint32_t i = 0; i < call->input_count; ++i)
      if (call->inputs[i].bytes > 0) std::memcpy(host.at(blocks_[i]), call->inputs[i].data, call->inputs[i].bytes);
    if (std::string wrong = host.run(known_, definition_, seedOf(call)); !wrong.empty()) return wrong;
    for (std::uint32_t o = 0; o < call->output_count; ++o)
      if (call->outputs[o].bytes > 0)
        std::memcpy(call->outputs[o].data, host.at(blocks_[call->input_count + o]), call->outputs[o].bytes);
    return "";
  }

 private:
  // splitmix64 of the parts, so that neighbours have seeds far apart; torch takes 63 bits and more.
  static std::uint64_t seedOf(const ssp_kernel_call* call) {
    std::uint64_t seed = 0;
    for (const std::uint64_t part : {call->seed, call->step, std::uint64_t{call->node}}) {
      seed += part + 0x9e3779b97f4a7c15ULL;
      seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9ULL;
      seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebULL;
      seed ^= seed >> 31;
    }
    return seed >> 1;
  }

  bool operands(const char* name, const ssp_operand* list, std::uint32_t count) {
    definition_ += std::string(",\"") + name + "\":[";
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::size_t offset = HostProcess::instance().allocate(bytesOf(list[i]));
      if (offset == SIZE_MAX) return false;
      blocks_.push_back(offset);
      definition_ += (i == 0 ? "[" : ",[") + std::to_string(list[i].dtype) + ",[";
      for (std::uint32_t axis = 0; axis < list[i].rank; ++axis)
        definition_ += (axis == 0 ? "" : ",") + std::to_string(list[i].dims[axis]);
      definition_ += "]," + std::to_string(offset) + "]";
    }
    definition_ += "]";
    return true;
  }

  std::vector<std::size_t> blocks_;  // inputs, then outputs
  std::string definition_;
  HostProcess::Known known_;
};

ssp_status create(const ssp_kernel* kernel, ssp_kernel_context* c, void** instance) {
  auto node = std::make_unique<Node>();
  if (const std::string wrong = node->make(*kernel, c); !wrong.empty()) return c->fail(c, wrong.c_str());
  c->determinism = SSP_DETERMINISM_KEYED_RANDOM;
  c->determinism_reason = "torch is seeded by seed, micro step and node before each run; its own operators promise the rest";
  *instance = node.release();
  return SSP_OK;
}

ssp_status run(void* instance, const ssp_kernel_call* call) {
  const std::string wrong = static_cast<Node*>(instance)->run(call);
  return wrong.empty() ? SSP_OK : call->fail(call, wrong.c_str());
}

void destroy(void* instance) { delete static_cast<Node*>(instance); }

// ----------------------------------------------------------------------------------------------------------------- entry

constexpr ssp_attr_info attribute(const char* name, std::int32_t kind, bool required, const char* text = nullptr) {
  return {static_cast<std::uint32_t>(sizeof(ssp_attr_info)), kind, name, required ? 1 : 0, 0, 0, text};
}

constexpr ssp_attr_info kForward[] = {
    attribute("call", SSP_ATTR_STRING, true),        attribute("arguments", SSP_ATTR_STRING, true),
    attribute("types", SSP_ATTR_INTS, true),         attribute("ranks", SSP_ATTR_INTS, true),
    attribute("shapes", SSP_ATTR_INTS, false),       attribute("file", SSP_ATTR_STRING, false, ""),
    attribute("module", SSP_ATTR_STRING, false, ""), attribute("input_ranks", SSP_ATTR_INTS, false),
    attribute("input_shapes", SSP_ATTR_INTS, false),
};
constexpr ssp_attr_info kBackward[] = {
    attribute("call", SSP_ATTR_STRING, true),        attribute("arguments", SSP_ATTR_STRING, true),
    attribute("file", SSP_ATTR_STRING, false, ""),   attribute("function", SSP_ATTR_INT, false),
    attribute("arriving", SSP_ATTR_INTS, true),      attribute("wanted", SSP_ATTR_INTS, true),
    attribute("module", SSP_ATTR_STRING, false, ""),
};

constexpr std::int64_t kExtents[] = {3, 5}, kFloat[] = {SSP_FLOAT32}, kTwo[] = {2}, kZero[] = {0};
constexpr ssp_example_operand kMatrix{sizeof(ssp_example_operand), SSP_FLOAT32, 2, kExtents, -1, 1};
constexpr ssp_example_operand kOne[] = {kMatrix}, kBoth[] = {kMatrix, kMatrix};

constexpr ssp_attr text(const char* name, const char* value) {
  return {static_cast<std::uint32_t>(sizeof(ssp_attr)), SSP_ATTR_STRING, name, 0, 0, value, nullptr, nullptr, 0};
}
constexpr ssp_attr list(const char* name, const std::int64_t* values, std::uint64_t count) {
  return {static_cast<std::uint32_t>(sizeof(ssp_attr)), SSP_ATTR_INTS, name, 0, 0, nullptr, values, nullptr, count};
}
constexpr ssp_attr kArguments = text("arguments", "[{\"tensor\":0}]"), kType = list("types", kFloat, 1),
                   kRank = list("ranks", kTwo, 1), kShape = list("shapes", kExtents, 2);
constexpr ssp_attr kAtenExample[] = {text("call", "aten::tanh.default"), kArguments, kType, kRank, kShape};
constexpr ssp_attr kFunctionExample[] = {text("call", "Twice"), kArguments, kType, kRank, kShape};
constexpr ssp_attr kGradientExample[] = {text("call", "aten::tanh.default"), kArguments, list("arriving", kZero, 1),
                                         list("wanted", kZero, 1)};
constexpr ssp_example kAtenExamples[] = {{sizeof(ssp_example), kOne, 1, kAtenExample, 5}};
constexpr ssp_example kFunctionExamples[] = {{sizeof(ssp_example), kOne, 1, kFunctionExample, 5}};
constexpr ssp_example kGradientExamples[] = {{sizeof(ssp_example), kBoth, 2, kGradientExample, 4}};

ssp_op forwardOp(const char* name, const char* doc, const ssp_example* examples) {
  ssp_op op{};
  op.size = sizeof(ssp_op);
  op.domain = kDomain, op.name = name, op.doc = doc;
  op.since_version = 1;
  op.least_inputs = 0, op.most_inputs = SSP_MANY, op.least_outputs = 1, op.most_outputs = SSP_MANY;
  op.attrs = kForward, op.attr_count = std::size(kForward);
  op.category = SSP_CATEGORY_OTHER, op.precision = SSP_PRECISION_FLOAT32, op.recompute = SSP_RECOMPUTE_COSTLY;
  op.differentiable_inputs = op.differentiable_outputs = 0xffffffffU;
  op.infer_shape = inferResults, op.gradient = emitGradient;
  op.examples = examples, op.example_count = 1;
  return op;
}

const ssp_op kAten =
    forwardOp("Aten", "torch.ops.aten's operator `call`, run by Python; `arguments`: JSON, in order", kAtenExamples);
const ssp_op kFunction = forwardOp(
    "Function", "the autograd.Function `call` of the Python file `file`; its backward() is the gradient", kFunctionExamples);
const ssp_op kGradient = [] {
  ssp_op op =
      forwardOp("Gradient", "dy of the results `arriving`, inputs of Aten or Function → gradients of the inputs `wanted`",
                kGradientExamples);
  op.attrs = kBackward, op.attr_count = std::size(kBackward);
  op.infer_shape = inferGradient, op.gradient = nullptr;
  op.no_gradient_reason = "a gradient itself; second derivatives are not written";
  op.differentiable_inputs = op.differentiable_outputs = 0;
  return op;
}();

ssp_kernel kernelOf(const char* op) {
  ssp_kernel kernel{};
  kernel.size = sizeof(ssp_kernel);
  kernel.domain = kDomain, kernel.op = op, kernel.device = "cpu";
  kernel.implementation = "torch in a child process";
  kernel.dtypes = 0xffffffffU;
  kernel.create = create, kernel.run = run, kernel.destroy = destroy;
  return kernel;
}

const ssp_kernel kAtenKernel = kernelOf("Aten"), kFunctionKernel = kernelOf("Function"),
                 kGradientKernel = kernelOf("Gradient");
const ssp_op* const kOps[] = {&kAten, &kFunction, &kGradient};
const ssp_kernel* const kKernels[] = {&kAtenKernel, &kFunctionKernel, &kGradientKernel};

ssp_plugin entry() {
  ssp_plugin plugin{};
  plugin.size = sizeof(ssp_plugin);
  plugin.abi_major = SSP_ABI_MAJOR, plugin.abi_minor = SSP_ABI_MINOR;
  plugin.name = "python_host", plugin.version = "1";
  plugin.doc = "operators of PyTorch and autograd.Functions, run by Python in a child process";
  plugin.ops = kOps, plugin.op_count = std::size(kOps);
  plugin.kernels = kKernels, plugin.kernel_count = std::size(kKernels);
  return plugin;
}

}  // namespace

extern "C" SSP_EXPORT const ssp_plugin stepscope_plugin_entry = entry();

// What can be told of a plugin without calling it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "engine/ops/op_def.h"
#include "engine/plugin/attribute_views.h"
#include "engine/plugin/guard.h"
#include "engine/plugin/plugin_library.h"
#include "kernels/dtype.h"
#include "kernels/shape.h"

namespace stepscope {
namespace {

constexpr std::uint32_t kMostEntries = 4096;
constexpr std::size_t kKernelOf10 = offsetof(ssp_kernel, functions);  // ssp_kernel in version 1.0
constexpr std::array<std::string_view, 4> kTakenDomains{"", "ai.onnx", "com.microsoft", "stepscope"};
constexpr std::array<std::string_view, 3> kTakenSuffixes{".npz", ".safetensors", ".pb"};
constexpr std::array<std::string_view, 3> kPhases{"pre-grad passes", "post-grad passes", "fold"};

bool isSnakeCase(const char* text) {
  if (text == nullptr || *text < 'a' || *text > 'z') return false;
  return std::all_of(text, text + std::string_view(text).size(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

// What stands in messages and in files as it is.
bool isIdentifier(std::string_view text) {
  return text.size() <= 256 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
                  c == '-';
         });
}

bool isEmpty(const char* text) { return text == nullptr || *text == '\0'; }

class Checker {
 public:
  Checker(const ssp_plugin& entry, std::string name) : entry_(entry), name_(std::move(name)) {}

  Status run() {
    SS_TRY(list("ops", entry_.ops, entry_.op_count, sizeof(ssp_op)));
    SS_TRY(list("kernels", entry_.kernels, entry_.kernel_count, hasDevices() ? sizeof(ssp_kernel) : kKernelOf10));
    SS_TRY(list("passes", entry_.passes, entry_.pass_count, sizeof(ssp_pass)));
    SS_TRY(list("options", entry_.options, entry_.option_count, sizeof(ssp_option)));
    SS_TRY(list("readers", entry_.readers, entry_.reader_count, sizeof(ssp_reader)));
    for (std::uint32_t i = 0; i < entry_.op_count; ++i) SS_TRY(op(*entry_.ops[i], i));
    for (std::uint32_t i = 0; i < entry_.kernel_count; ++i) SS_TRY(kernel(*entry_.kernels[i], i));
    for (std::uint32_t i = 0; i < entry_.op_count; ++i) SS_TRY(hasKernel(*entry_.ops[i]));
    for (std::uint32_t i = 0; i < entry_.pass_count; ++i) SS_TRY(pass(*entry_.passes[i], i));
    for (std::uint32_t i = 0; i < entry_.option_count; ++i) SS_TRY(option(*entry_.options[i], i));
    for (std::uint32_t i = 0; i < entry_.reader_count; ++i) SS_TRY(reader(*entry_.readers[i], i));
    return {};
  }

 private:
  // What is wrong with `where`.
  tl::unexpected<Error> bad(const std::string& where, const std::string& found, const std::string& expected) const {
    return againstContract("plugin '" + name_ + "': " + where, "found " + found, "expected " + expected);
  }

  template <typename Entry>
  Status list(const char* what, const Entry* const* entries, std::uint32_t count, std::size_t size) const {
    if (count > kMostEntries) return bad(what, std::to_string(count), fmt::format("at most {}", kMostEntries));
    if (count > 0 && entries == nullptr) return bad(what, fmt::format("{} at no address", count), "an array");
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::string where = fmt::format("{}[{}]", what, i);
      if (entries[i] == nullptr) return bad(where, "a null pointer", "an entry");
      if (entries[i]->size != size)
        return bad(where, fmt::format("size {}", entries[i]->size), fmt::format("size {}", size));
    }
    return {};
  }

  Status op(const ssp_op& o, std::uint32_t i) const {
    if (isEmpty(o.name)) return bad(fmt::format("ops[{}]", i), "no name", "one");
    if (!isIdentifier(o.name) || (!isEmpty(o.domain) && !isIdentifier(o.domain)))
      return bad(fmt::format("ops[{}]", i), "a name or domain with other signs", "letters, digits, '_', '.' and '-'");
    const std::string where = fmt::format("op '{}.{}'", isEmpty(o.domain) ? "" : o.domain, o.name);
    if (isEmpty(o.domain) || std::find(kTakenDomains.begin(), kTakenDomains.end(), o.domain) != kTakenDomains.end())
      return bad(where, fmt::format("domain '{}'", isEmpty(o.domain) ? "" : o.domain), "a domain of its own");
    // Nodes that gradients and passes make are written in the internal opset, whatever their domain.
    if (o.since_version < 1 || o.since_version > kInternalOpset)
      return bad(where, fmt::format("since_version {}", o.since_version), fmt::format("one from 1 to {}", kInternalOpset));
    if (isEmpty(o.doc)) return bad(where, "no doc", "a line that says what it computes");
    if (o.category < SSP_CATEGORY_OPTIMIZER || o.category > SSP_CATEGORY_OTHER)
      return bad(where, fmt::format("category {}", o.category), "one of SSP_CATEGORY_…");
    if (o.precision < SSP_PRECISION_LOW || o.precision > SSP_PRECISION_WIDE)
      return bad(where, fmt::format("precision {}", o.precision), "one of SSP_PRECISION_…");
    if (o.recompute < SSP_RECOMPUTE_NEVER || o.recompute > SSP_RECOMPUTE_COSTLY)
      return bad(where, fmt::format("recompute {}", o.recompute), "one of SSP_RECOMPUTE_…");
    if (o.side_effect != 0 && o.recompute != SSP_RECOMPUTE_NEVER)
      return bad(where, "a side effect, which recompute would repeat", "SSP_RECOMPUTE_NEVER");
    if (o.least_inputs > o.most_inputs || o.least_outputs > o.most_outputs || o.most_outputs == 0)
      return bad(where,
                 fmt::format("{} to {} inputs and {} to {} outputs", o.least_inputs, o.most_inputs, o.least_outputs,
                             o.most_outputs),
                 "least up to most, and an output");
    if (o.infer_shape == nullptr) return bad(where, "no infer_shape", "one");
    if (o.gradient == nullptr && isEmpty(o.no_gradient_reason))
      return bad(where, "neither a gradient nor no_gradient_reason", "one of them");
    if (o.gradient != nullptr && o.differentiable_inputs == 0)
      return bad(where, "a gradient and no differentiable_inputs", "the inputs that it is for");
    SS_TRY(attributes(o, where));
    return examples(o, where);
  }

  Status examples(const ssp_op& o, const std::string& where) const {
    if (o.example_count == 0 || o.example_count > kMostEntries || o.examples == nullptr)
      return bad(where, fmt::format("{} examples", o.example_count), fmt::format("1 to {}", kMostEntries));
    for (std::uint32_t e = 0; e < o.example_count; ++e) {
      const ssp_example& example = o.examples[e];
      if (example.size != sizeof(ssp_example))
        return bad(where, fmt::format("examples[{}] of size {}", e, example.size),
                   fmt::format("size {}", sizeof(ssp_example)));
      if (example.input_count < o.least_inputs || example.input_count > o.most_inputs ||
          (example.input_count > 0 && example.inputs == nullptr))
        return bad(where, fmt::format("examples[{}] with {} inputs", e, example.input_count),
                   fmt::format("{} to {}", o.least_inputs, o.most_inputs));
      for (std::uint32_t i = 0; i < example.input_count; ++i) {
        const ssp_example_operand& operand = example.inputs[i];
        if (operand.size != sizeof(ssp_example_operand))
          return bad(where, fmt::format("examples[{}].inputs[{}] of size {}", e, i, operand.size),
                     fmt::format("size {}", sizeof(ssp_example_operand)));
        if (const Status wrong = exampleOperand(operand, where, fmt::format("examples[{}].inputs[{}]", e, i)); !wrong)
          return wrong;
      }
      if (const auto attrs = attributesOf(example.attrs, example.attr_count); !attrs)
        return bad(where, fmt::format("examples[{}]: {}", e, attrs.error().message), "attributes of the ABI");
    }
    return {};
  }

  Status exampleOperand(const ssp_example_operand& operand, const std::string& where, const std::string& what) const {
    constexpr std::int64_t kMostElements = std::int64_t{1} << 24;
    const auto type = dtypeFromOnnx(operand.dtype);
    if (!type || *type == DType::kString)
      return bad(where, fmt::format("{} of element type {}", what, operand.dtype), "one of the ABI");
    if (operand.rank > 64 || (operand.rank > 0 && operand.dims == nullptr))
      return bad(where, fmt::format("{} of rank {}", what, operand.rank), "its extents");
    const auto count = checkedElementCount({operand.dims, operand.rank});
    if (!count || *count > kMostElements || !(operand.low <= operand.high))
      return bad(where,
                 fmt::format("{} with extents {} and contents from {} to {}", what, dimsText({operand.dims, operand.rank}),
                             operand.low, operand.high),
                 fmt::format("up to {} elements, low up to high", kMostElements));
    return {};
  }

  Status attributes(const ssp_op& o, const std::string& where) const {
    if (o.attr_count > kMostEntries || (o.attr_count > 0 && o.attrs == nullptr))
      return bad(where, fmt::format("{} attributes", o.attr_count), fmt::format("up to {}, with attrs", kMostEntries));
    for (std::uint32_t i = 0; i < o.attr_count; ++i) {
      const ssp_attr_info& info = o.attrs[i];
      if (info.size != sizeof(ssp_attr_info))
        return bad(where, fmt::format("attrs[{}] of size {}", i, info.size), fmt::format("size {}", sizeof(ssp_attr_info)));
      if (isEmpty(info.name)) return bad(where, fmt::format("attrs[{}] without a name", i), "one");
      if (attributeKindName(info.kind).empty())
        return bad(where, fmt::format("attribute '{}' of kind {}", info.name, info.kind), "one of SSP_ATTR_…");
    }
    return {};
  }

  Status kernel(const ssp_kernel& k, std::uint32_t i) const {
    if (isEmpty(k.op) || isEmpty(k.domain)) return bad(fmt::format("kernels[{}]", i), "no op or domain", "both");
    const std::string where = fmt::format("kernel '{}.{}'", k.domain, k.op);
    const bool known = std::any_of(entry_.ops, entry_.ops + entry_.op_count, [&](const ssp_op* o) {
      return std::string_view(o->name) == k.op && std::string_view(o->domain) == k.domain;
    });
    if (!known) return bad(where, "no such op in this plugin", "a kernel of one of its ops");
    const std::string_view device = isEmpty(k.device) ? "" : k.device;
    if (device != "cpu" && !(device == "cuda" && hasDevices()))
      return bad(where, fmt::format("device '{}'", device), hasDevices() ? "'cpu' or 'cuda'" : "'cpu'");
    if (isEmpty(k.implementation)) return bad(where, "no implementation", "what does the work, in words");
    if (k.dtypes == 0) return bad(where, "no dtypes", "those that it takes");
    if (k.create == nullptr) return bad(where, "no create", "one");
    if (k.run == nullptr) return bad(where, "no run", "one");
    return device == "cuda" ? deviceCode(k, where) : Status();
  }
  bool hasDevices() const { return entry_.abi_minor >= 1; }

  Status deviceCode(const ssp_kernel& k, const std::string& where) const {
    if (k.function_count == 0 || k.function_count > kMostEntries || k.functions == nullptr)
      return bad(where, fmt::format("{} functions for 'cuda'", k.function_count), fmt::format("1 to {}", kMostEntries));
    for (std::uint32_t f = 0; f < k.function_count; ++f) {
      const ssp_device_function& function = k.functions[f];
      const std::string which = fmt::format("functions[{}]", f);
      if (function.size != sizeof(ssp_device_function))
        return bad(where, fmt::format("{} of size {}", which, function.size),
                   fmt::format("size {}", sizeof(ssp_device_function)));
      if (isEmpty(function.name) || !isIdentifier(function.name))
        return bad(where, which + " without a name in letters, digits and '_'", "its symbol in the image");
      if (function.body == nullptr)
        return bad(where, fmt::format("function '{}' without a body", function.name), "one for the emulator");
      if (function.parameter_count > SSP_MOST_PARAMETERS)
        return bad(where, fmt::format("function '{}' with {} parameters", function.name, function.parameter_count),
                   fmt::format("up to {}", SSP_MOST_PARAMETERS));
    }
    return image(k, where);
  }
  // What the driver reads without knowing how long it is.
  Status image(const ssp_kernel& k, const std::string& where) const {
    if (k.image == nullptr) return {};
    const auto* const bytes = static_cast<const char*>(k.image);
    const std::string_view begin(bytes, std::min<std::uint64_t>(k.image_bytes, 4));
    const bool binary = begin == "\x50\xED\x55\xBA" || begin ==
                                                           "\x7F"
                                                           "ELF";
    if (k.image_bytes >= 4 && (binary || bytes[k.image_bytes - 1] == '\0')) return {};
    return bad(where, fmt::format("an image of {} bytes that is neither binary nor ends with 0", k.image_bytes),
               "a fat binary, a cubin or PTX");
  }

  Status hasKernel(const ssp_op& o) const {
    const bool has = std::any_of(entry_.kernels, entry_.kernels + entry_.kernel_count, [&](const ssp_kernel* k) {
      return std::string_view(k->op) == o.name && std::string_view(k->domain) == o.domain &&
             std::string_view(k->device) == "cpu";
    });
    return has ? Status() : bad(fmt::format("op '{}.{}'", o.domain, o.name), "no kernel of it for 'cpu'", "one");
  }

  Status pass(const ssp_pass& p, std::uint32_t i) const {
    if (!isSnakeCase(p.name)) return bad(fmt::format("passes[{}]", i), "no name in snake_case", "one");
    const std::string where = fmt::format("pass '{}'", p.name);
    if (isEmpty(p.doc)) return bad(where, "no doc", "a line that says what it does");
    if (isEmpty(p.phase) || std::find(kPhases.begin(), kPhases.end(), p.phase) == kPhases.end())
      return bad(where, fmt::format("phase '{}'", isEmpty(p.phase) ? "" : p.phase),
                 fmt::format("'{}', '{}' or '{}'", kPhases[0], kPhases[1], kPhases[2]));
    if (p.run == nullptr) return bad(where, "no run", "one");
    return {};
  }

  Status option(const ssp_option& o, std::uint32_t i) const {
    if (isEmpty(o.name) || !std::string_view(o.name).starts_with(name_ + "."))
      return bad(fmt::format("options[{}]", i), fmt::format("name '{}'", isEmpty(o.name) ? "" : o.name),
                 fmt::format("one that begins with '{}.'", name_));
    const std::string where = fmt::format("option '{}'", o.name);
    if (o.default_value == nullptr || isEmpty(o.doc)) return bad(where, "no default_value or no doc", "both");
    if (o.choice_count > kMostEntries || (o.choice_count > 0 && o.choices == nullptr))
      return bad(where, fmt::format("{} choices", o.choice_count), "an array of them");
    if (o.choice_count == 0) return {};
    bool among = false;
    for (std::uint32_t c = 0; c < o.choice_count; ++c) {
      if (o.choices[c] == nullptr) return bad(where, fmt::format("choices[{}] without text", c), "one");
      among |= std::string_view(o.choices[c]) == o.default_value;
    }
    return among ? Status() : bad(where, fmt::format("default '{}'", o.default_value), "one of its choices");
  }

  Status reader(const ssp_reader& r, std::uint32_t i) const {
    if (isEmpty(r.name)) return bad(fmt::format("readers[{}]", i), "no name", "what it reads, in words");
    const std::string where = fmt::format("reader '{}'", r.name);
    const bool taken =
        !isEmpty(r.suffix) && std::find(kTakenSuffixes.begin(), kTakenSuffixes.end(), r.suffix) != kTakenSuffixes.end();
    if (isEmpty(r.suffix) || *r.suffix != '.' || taken)
      return bad(where, fmt::format("suffix '{}'", isEmpty(r.suffix) ? "" : r.suffix), "one of its own, such as '.tar'");
    if (r.open == nullptr || r.read == nullptr || r.close == nullptr)
      return bad(where, "no open, read or close", "all three");
    return {};
  }

  const ssp_plugin& entry_;
  std::string name_;
};

}  // namespace

Status checkEntry(const ssp_plugin& entry, const std::string& file) {
  const std::string here = fmt::format("plugin '{}': stepscope_plugin_entry", file);
  if (entry.size < 3 * sizeof(std::uint32_t))
    return againstContract(here, fmt::format("found size {}", entry.size), fmt::format("expected {}", sizeof(ssp_plugin)));
  if (entry.abi_major != SSP_ABI_MAJOR || entry.abi_minor > SSP_ABI_MINOR)
    return unsupported(fmt::format("{}: found ABI {}.{}; expected {}.{} or an older minor version", here, entry.abi_major,
                                   entry.abi_minor, SSP_ABI_MAJOR, SSP_ABI_MINOR));
  if (entry.size != sizeof(ssp_plugin))
    return againstContract(here, fmt::format("found size {}", entry.size), fmt::format("expected {}", sizeof(ssp_plugin)));
  if (!isSnakeCase(entry.name) || std::string_view(entry.name) == "plugin" || std::string_view(entry.name) == "pass")
    return againstContract(here, fmt::format("found name '{}'", isEmpty(entry.name) ? "" : entry.name),
                           "expected one in snake_case that is neither 'plugin' nor 'pass'");
  if (isEmpty(entry.version)) return againstContract(here, "found no version", "expected one");
  return Checker(entry, entry.name).run();
}

}  // namespace stepscope

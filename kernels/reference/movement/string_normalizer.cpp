// StringNormalizer: drops stop words and changes the case of ASCII letters; other bytes stay, whatever the locale.
#include <vector>

#include "kernels/reference/movement/common.h"

namespace stepscope::reference {
namespace {

std::string cased(std::string text, bool upper) {
  for (char& letter : text) {
    if (upper && letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
    if (!upper && letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return text;
}

}  // namespace

Status stringNormalizerKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  if (x.dtype != DType::kString || x.dims.empty()) return kernelError(spec, "input must be a list of strings");
  const std::string action = spec.attrs.text("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    return kernelError(spec, "case_change_action '" + action + "'; expected NONE, LOWER or UPPER");
  const bool sensitive = spec.attrs.integer("is_case_sensitive", 0) != 0;
  std::vector<std::string> stopWords;
  if (const AttrValue* words = spec.attrs.find("stopwords"))
    if (const auto* list = std::get_if<std::vector<std::string>>(words)) stopWords = *list;
  if (!sensitive)
    for (std::string& word : stopWords) word = cased(word, false);
  std::vector<std::string> kept;
  for (const std::string& text : x.as<std::string>()) {
    if (std::find(stopWords.begin(), stopWords.end(), sensitive ? text : cased(text, false)) != stopWords.end()) continue;
    kept.push_back(action == "NONE" ? text : cased(text, action == "UPPER"));
  }
  if (kept.empty()) kept.emplace_back();
  Dims dims(x.dims.size(), 1);
  dims.back() = static_cast<std::int64_t>(kept.size());
  SS_TRY(prepareOutput(spec, call, 0, std::move(dims)));
  std::copy(kept.begin(), kept.end(), static_cast<std::string*>(call.outputs[0].data));
  return {};
}

}  // namespace stepscope::reference

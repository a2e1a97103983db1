#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "kernels/reference/linear/recurrent.h"

namespace stepscope::reference {
namespace {

using Kind = Activation::Kind;

struct Named {
  std::string_view name;
  Kind kind;
  bool takesAlpha, takesBeta;
  double alpha, beta;
};

constexpr std::array kNamed{
    Named{"relu", Kind::kRelu, false, false, 0, 0},
    Named{"tanh", Kind::kTanh, false, false, 0, 0},
    Named{"sigmoid", Kind::kSigmoid, false, false, 0, 0},
    Named{"affine", Kind::kAffine, true, true, 1, 0},
    Named{"leakyrelu", Kind::kLeakyRelu, true, false, 0.01, 0},
    Named{"thresholdedrelu", Kind::kThresholdedRelu, true, false, 1, 0},
    Named{"scaledtanh", Kind::kScaledTanh, true, true, 1, 1},
    Named{"hardsigmoid", Kind::kHardSigmoid, true, true, 0.2, 0.5},
    Named{"elu", Kind::kElu, true, false, 1, 0},
    Named{"softsign", Kind::kSoftsign, false, false, 0, 0},
    Named{"softplus", Kind::kSoftplus, false, false, 0, 0},
};

double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

}  // namespace

double Activation::value(double x) const {
  if (clip > 0) x = std::clamp(x, -clip, clip);
  switch (kind) {
    case Kind::kRelu: return std::max(x, 0.0);
    case Kind::kTanh: return std::tanh(x);
    case Kind::kSigmoid: return sigmoid(x);
    case Kind::kAffine: return alpha * x + beta;
    case Kind::kLeakyRelu: return x >= 0 ? x : alpha * x;
    case Kind::kThresholdedRelu: return x >= alpha ? x : 0;
    case Kind::kScaledTanh: return alpha * std::tanh(beta * x);
    case Kind::kHardSigmoid: return std::clamp(alpha * x + beta, 0.0, 1.0);
    case Kind::kElu: return x >= 0 ? x : alpha * std::expm1(x);
    case Kind::kSoftsign: return x / (1 + std::fabs(x));
    case Kind::kSoftplus: return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
  }
  return 0;
}

double Activation::derivative(double x) const {
  if (clip > 0 && std::fabs(x) > clip) return 0;
  const double y = value(x);
  switch (kind) {
    case Kind::kRelu: return x > 0 ? 1 : 0;
    case Kind::kTanh: return 1 - y * y;
    case Kind::kSigmoid: return y * (1 - y);
    case Kind::kAffine: return alpha;
    case Kind::kLeakyRelu: return x >= 0 ? 1 : alpha;
    case Kind::kThresholdedRelu: return x >= alpha ? 1 : 0;
    case Kind::kScaledTanh: return alpha * beta * (1 - std::tanh(beta * x) * std::tanh(beta * x));
    case Kind::kHardSigmoid: return y > 0 && y < 1 ? alpha : 0;
    case Kind::kElu: return x >= 0 ? 1 : alpha * std::exp(x);
    case Kind::kSoftsign: return 1 / ((1 + std::fabs(x)) * (1 + std::fabs(x)));
    case Kind::kSoftplus: return sigmoid(x);
  }
  return 0;
}

Result<std::vector<Activation>> readActivations(const Attributes& attrs, std::size_t direction,
                                                const std::vector<std::string>& defaults) {
  std::vector<std::string> names;
  if (const AttrValue* value = attrs.find("activations"); value && std::holds_alternative<std::vector<std::string>>(*value))
    names = std::get<std::vector<std::string>>(*value);
  const std::size_t directions = attrs.text("direction", "forward") == "bidirectional" ? 2 : 1;
  if (names.empty())
    for (std::size_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  if (names.size() != defaults.size() * directions)
    return invalid("attribute 'activations': " + std::to_string(names.size()) + " names; expected " +
                   std::to_string(defaults.size() * directions));
  const std::vector<float> alphas = attrs.reals("activation_alpha"), betas = attrs.reals("activation_beta");
  std::size_t alpha = 0, beta = 0;
  std::vector<Activation> own;
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string lower = names[i];
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto it = std::find_if(kNamed.begin(), kNamed.end(), [&](const Named& named) { return named.name == lower; });
    if (it == kNamed.end())
      return invalid("attribute 'activations': '" + names[i] + "'; expected an activation function of ONNX");
    Activation activation{it->kind, it->alpha, it->beta, attrs.real("clip", 0.0f)};
    if (it->takesAlpha && alpha < alphas.size()) activation.alpha = alphas[alpha++];
    if (it->takesBeta && beta < betas.size()) activation.beta = betas[beta++];
    if (i / defaults.size() == direction) own.push_back(activation);
  }
  return own;
}

}  // namespace stepscope::reference

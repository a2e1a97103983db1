#include "storage/pytorch/align.h"

#include <fmt/format.h>

#include <algorithm>

namespace stepscope::storage {
namespace {

constexpr std::int64_t kMostCells = 100'000'000;
enum Way : char { kPair, kSkipA, kSkipB };

}  // namespace

Result<std::vector<std::pair<int, int>>> align(int a, int b, const std::function<int(int, int)>& score) {
  const std::int64_t rows = a, columns = b;
  if (rows * columns > kMostCells)
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("join: {} of theirs beside {} of ours; expected at most {} pairs", a, b, kMostCells));
  std::vector<char> way(static_cast<std::size_t>(rows * columns));
  std::vector<std::int32_t> above(static_cast<std::size_t>(b) + 1, 0), here(above);
  for (int i = 0; i < a; ++i) {
    for (int j = 0; j < b; ++j) {
      const auto at = static_cast<std::size_t>(j);
      std::int32_t best = above[at + 1];
      Way choice = kSkipA;
      if (here[at] > best) best = here[at], choice = kSkipB;
      if (const int s = score(i, j); s > 0 && above[at] + s >= best) best = above[at] + s, choice = kPair;
      here[at + 1] = best;
      way[static_cast<std::size_t>(i) * static_cast<std::size_t>(b) + at] = choice;
    }
    std::swap(above, here);
  }
  std::vector<std::pair<int, int>> out;
  for (int i = a - 1, j = b - 1; i >= 0 && j >= 0;) {
    const char choice = way[static_cast<std::size_t>(i) * static_cast<std::size_t>(b) + static_cast<std::size_t>(j)];
    if (choice == kPair)
      out.emplace_back(i--, j--);
    else if (choice == kSkipA)
      --i;
    else
      --j;
  }
  std::ranges::reverse(out);
  return out;
}

}  // namespace stepscope::storage

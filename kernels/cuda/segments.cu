#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/segments.h"

namespace stepscope::cuda {
inline namespace segments_cu {

constexpr int kBits = 4, kDigits = 1 << kBits;     // of a pass
constexpr int kItems = 8;                          // keys of a thread
constexpr std::int64_t kTile = kThreads * kItems;  // of a block
constexpr int kPart = kThreads / kDigits;          // counts of a digit that one thread adds up: 16 threads share a digit
static_assert(kDigits * kPart == kThreads && kPart == kDigits);

SS_DEVICE int digitOf(std::int64_t key, int shift) { return static_cast<int>(key >> shift) & (kDigits - 1); }

// keys[count] → counts[digit, tile]: how many keys of each tile have the digit at bit `shift`. One block per tile.
SS_GLOBAL void countDigits(Global<const std::int64_t> keys, Global<std::int64_t> counts, std::int64_t count, int shift) {
  SS_SHARED(int, own, kDigits* kThreads);  // [digit][thread]
  const int thread = gpu::threadIndex(), digit = thread / kPart, part = thread % kPart;
  for (int d = 0; d < kDigits; ++d) own[d * kThreads + thread] = 0;
  const std::int64_t first = gpu::blockIndex() * kTile + thread * kItems;
  for (std::int64_t i = first; i < first + kItems && i < count; ++i) own[digitOf(keys[i], shift) * kThreads + thread] += 1;
  gpu::syncThreads();
  int sum = 0;
  for (int k = 0; k < kPart; ++k) sum += own[digit * kThreads + k * kPart + part];
  for (int lanes = kPart / 2; lanes > 0; lanes /= 2) sum += gpu::shuffleXor(sum, lanes);
  if (part == 0) counts[digit * gpu::gridSize() + gpu::blockIndex()] = sum;
}

// counts[total] → the sums of those before each. One block.
SS_GLOBAL void sumBefore(Global<std::int64_t> counts, std::int64_t total) {
  const std::int64_t each = (total + gpu::blockSize() - 1) / gpu::blockSize(), begin = gpu::threadIndex() * each,
                     end = begin + each < total ? begin + each : total;
  std::int64_t sum = 0;
  for (std::int64_t i = begin; i < end; ++i) sum += counts[i];
  std::int64_t before = scanBlock(sum) - sum;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t here = counts[i];
    counts[i] = before;
    before += here;
  }
}

// Keys and numbers [count] to their places by one digit; `before` is what sumBefore made of the counts. Without numbers a
// key's is its position. One block per tile.
SS_GLOBAL void moveKeys(Global<const std::int64_t> keys, Global<const std::int64_t> numbers,
                        Global<const std::int64_t> before, Global<std::int64_t> toKeys, Global<std::int64_t> toNumbers,
                        std::int64_t count, int shift) {
  SS_SHARED(int, own, kDigits* kThreads);  // [digit][thread]: counts, then where the next key of the thread goes
  const int thread = gpu::threadIndex(), digit = thread / kPart, part = thread % kPart;
  for (int d = 0; d < kDigits; ++d) own[d * kThreads + thread] = 0;
  const std::int64_t first = gpu::blockIndex() * kTile + thread * kItems;
  for (std::int64_t i = first; i < first + kItems && i < count; ++i) own[digitOf(keys[i], shift) * kThreads + thread] += 1;
  gpu::syncThreads();
  int sum = 0;
  for (int k = 0; k < kPart; ++k) sum += own[digit * kThreads + part * kPart + k];
  int upTo = sum;
  const int lane = thread % 32;
  for (int step = 1; step < kPart; step *= 2) {
    const int other = gpu::shuffle(upTo, part >= step ? lane - step : lane);
    if (part >= step) upTo += other;
  }
  int next = upTo - sum;
  for (int k = 0; k < kPart; ++k) {
    const int at = digit * kThreads + part * kPart + k, here = own[at];
    own[at] = next;
    next += here;
  }
  gpu::syncThreads();
  for (std::int64_t i = first; i < first + kItems && i < count; ++i) {
    const std::int64_t key = keys[i];
    const int d = digitOf(key, shift), mine = d * kThreads + thread, place = own[mine];
    const std::int64_t to = before[d * gpu::gridSize() + gpu::blockIndex()] + place;
    own[mine] = place + 1;
    toKeys[to] = key;
    toNumbers[to] = numbers.present() ? static_cast<std::int64_t>(numbers[i]) : i;
  }
}

template <Combining kHow, typename T>
SS_DEVICE T combined(T place, T value) {
  if constexpr (kHow == Combining::kAdd) return place + value;
  if constexpr (kHow == Combining::kMultiply) return place * value;
  if constexpr (kHow == Combining::kSmaller) return value < place || value != value ? value : place;
  if constexpr (kHow == Combining::kLarger) return value > place || value != value ? value : place;
  return value;
}

// values: [count, run] into y: [places, run]. One thread per key and column; it does nothing unless the key is the first of
// its segment (the last one, which is all that counts where values replace).
template <Combining kHow, typename T>
SS_GLOBAL void combineKeys(Global<const std::int64_t> keys, Global<const std::int64_t> numbers, Global<const T> values,
                           Global<T> y, std::int64_t count, std::int64_t places, std::int64_t run) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= count * run) return;
  const std::int64_t column = i % run;
  std::int64_t k = i / run;
  const std::int64_t key = keys[k];
  if (key >= places) return;
  if constexpr (kHow == Combining::kReplace) {
    if (k + 1 < count && keys[k + 1] == key) return;
    const T value = values[numbers[k] * run + column];
    y[key * run + column] = value;
  } else {
    if (k > 0 && keys[k - 1] == key) return;
    T value = y[key * run + column];
    for (; k < count && keys[k] == key; ++k)
      value = combined<kHow>(value, static_cast<T>(values[numbers[k] * run + column]));
    y[key * run + column] = value;
  }
}

template <typename Word>
SS_GLOBAL void startElements(Global<const Word> x, Global<Word> y, std::int64_t count) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= count) return;
  Word word{};
  if (x.present()) word = x[i];
  y[i] = word;
}

template <Combining kHow, typename T>
Status combineAs(Launcher& gpu, const Segments& s, std::size_t values) {
  const int last = s.passes();
  return gpu.run("segments: combine", gpu::function<combineKeys<kHow, T>>, blocksFor(s.count * s.run), kThreads,
                 gpu.readRoom<std::int64_t>(s.keysAt(last), s.count), gpu.readRoom<std::int64_t>(s.numbersAt(last), s.count),
                 gpu.in<T>(values), gpu.out<T>(0, Access::kReadWrite), s.count, s.places, s.run);
}

template <Combining kHow>
Status combineBySize(Launcher& gpu, const Segments& s, DType dtype, std::size_t values) {
  switch (dtype) {
    case DType::kF32: return combineAs<kHow, float>(gpu, s, values);
    case DType::kI32: return combineAs<kHow, std::int32_t>(gpu, s, values);
    default: return combineAs<kHow, std::int64_t>(gpu, s, values);
  }
}

}  // namespace segments_cu

int Segments::passes() const {
  int bits = 1;
  while ((places >> bits) != 0) ++bits;
  return (bits + kBits - 1) / kBits;
}
std::int64_t Segments::tiles() const { return blocksFor(count, kTile); }
std::size_t Segments::keysAt(int pass) const {
  return static_cast<std::size_t>(pass % 2) * static_cast<std::size_t>(count) * sizeof(std::int64_t);
}
std::size_t Segments::numbersAt(int pass) const {
  return static_cast<std::size_t>(2 + pass % 2) * static_cast<std::size_t>(count) * sizeof(std::int64_t);
}
std::size_t Segments::countsAt() const { return 4 * static_cast<std::size_t>(count) * sizeof(std::int64_t); }
std::size_t Segments::bytes() const {
  return countsAt() + static_cast<std::size_t>(kDigits * tiles()) * sizeof(std::int64_t);
}

bool canCombine(Combining how, DType dtype) {
  if (how == Combining::kReplace) return dtype != DType::kString && dtype != DType::kUndefined;
  return dtype == DType::kF32 || dtype == DType::kI32 || dtype == DType::kI64;
}

Status startResult(Launcher& gpu, int from) {
  const TensorView& y = gpu.call().outputs[0];
  const auto bytes = static_cast<std::int64_t>(y.bytes());
  const void* x = from < 0 ? y.data : gpu.call().inputs[static_cast<std::size_t>(from)].data;
  if (from >= 0 && x == y.data) return {};
  const auto startAs = [&]<typename Word>(Word) {
    const auto source = from < 0 ? Global<const Word>() : gpu.in<Word>(static_cast<std::size_t>(from));
    const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(Word));
    return gpu.run("segments: begin", gpu::function<startElements<Word>>, blocksFor(count), kThreads, source,
                   gpu.out<Word>(0), count);
  };
  if (movesWide(x, y.data, bytes)) return startAs(Wide{});
  return bytes % 4 == 0 ? startAs(std::uint32_t{}) : startAs(std::uint8_t{});
}

Status sortSegments(Launcher& gpu, const Segments& s) {
  const std::int64_t counts = kDigits * s.tiles();
  for (int pass = 0; pass < s.passes(); ++pass) {
    const int shift = pass * kBits;
    SS_TRY(gpu.run("segments: count", gpu::function<countDigits>, s.tiles(), kThreads,
                   gpu.readRoom<std::int64_t>(s.keysAt(pass), s.count), gpu.room<std::int64_t>(s.countsAt(), counts),
                   s.count, shift));
    SS_TRY(gpu.run("segments: sums", gpu::function<sumBefore>, 1, kThreads,
                   gpu.room<std::int64_t>(s.countsAt(), counts, Access::kReadWrite), counts));
    const auto numbers = pass == 0 ? Global<const std::int64_t>() : gpu.readRoom<std::int64_t>(s.numbersAt(pass), s.count);
    SS_TRY(gpu.run("segments: move", gpu::function<moveKeys>, s.tiles(), kThreads,
                   gpu.readRoom<std::int64_t>(s.keysAt(pass), s.count), numbers,
                   gpu.readRoom<std::int64_t>(s.countsAt(), counts), gpu.room<std::int64_t>(s.keysAt(pass + 1), s.count),
                   gpu.room<std::int64_t>(s.numbersAt(pass + 1), s.count), s.count, shift));
  }
  return {};
}

Status combineSegments(Launcher& gpu, const Segments& s, Combining how, DType dtype, std::size_t values) {
  switch (how) {
    case Combining::kAdd: return combineBySize<Combining::kAdd>(gpu, s, dtype, values);
    case Combining::kMultiply: return combineBySize<Combining::kMultiply>(gpu, s, dtype, values);
    case Combining::kSmaller: return combineBySize<Combining::kSmaller>(gpu, s, dtype, values);
    case Combining::kLarger: return combineBySize<Combining::kLarger>(gpu, s, dtype, values);
    case Combining::kReplace: break;
  }
  switch (dtypeSize(dtype)) {
    case 1: return combineAs<Combining::kReplace, std::uint8_t>(gpu, s, values);
    case 2: return combineAs<Combining::kReplace, std::uint16_t>(gpu, s, values);
    case 4: return combineAs<Combining::kReplace, std::uint32_t>(gpu, s, values);
    default: return combineAs<Combining::kReplace, std::uint64_t>(gpu, s, values);
  }
}

}  // namespace stepscope::cuda

// Device function of the noise: one source for nvcc and for the emulator.
//
//   nvcc -fatbin -std=c++17 -I ../../abi kernels.cu -o kernels.fatbin
#include "stepscope_device.h"

// What an element is multiplied by, on the CPU too.
SSP_ON_BOTH static inline float noise_factor(float uniform, float strength) {
  return 1.0f + strength * (2.0f * uniform - 1.0f);
}

// x, y: [count]; y may lie over x. One thread draws for four elements.
SSP_KERNEL noise(ssp::memory<const float> x, ssp::memory<float> y, ssp::random_key key, int64_t count, float strength) {
  const int64_t block = ssp::block_index() * ssp::block_size() + ssp::thread_index();
  const ssp::random_words drawn = key.words(block);
  for (int64_t e = 0; e < 4; ++e) {
    const int64_t i = block * 4 + e;
    if (i < count) y[i] = x[i] * noise_factor(ssp_uniform(drawn.word[e]), strength);
  }
}

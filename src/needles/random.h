// A seeded generator of choices whose results are the same on every machine and with every standard library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace modeld {

class SeededRandom {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}

  /// A number in [0, n). REQUIRES n > 0. (Multiply-shift, Lemire 2019; the bias is below n / 2^32.)
  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>(((engine_() >> 32U) * static_cast<std::uint64_t>(n)) >> 32U);
  }
  /// A number in [0, 1).
  double unit() { return static_cast<double>(engine_() >> 11U) * 0x1.0p-53; }
  bool chance(double probability) { return unit() < probability; }

  template <typename T, std::size_t N>
  const T& pick(const T (&items)[N]) {
    return items[below(N)];
  }
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace modeld

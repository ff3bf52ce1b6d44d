// Strong integers, for numbers that get mixed up: a stream position is not a place, a byte count is not a token count.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace modeld {

/// An ordered integer of its own type. Differences and sums with a plain count keep the type; two different kinds do
/// not mix. `get()` gives the number.
template <typename Tag, typename Rep = std::int64_t>
class Strong {
 public:
  using rep = Rep;
  constexpr Strong() = default;
  constexpr explicit Strong(Rep value) : value_(value) {}
  [[nodiscard]] constexpr Rep get() const { return value_; }

  friend constexpr auto operator<=>(Strong, Strong) = default;
  friend constexpr Strong operator+(Strong a, Rep n) { return Strong(a.value_ + n); }
  friend constexpr Strong operator-(Strong a, Rep n) { return Strong(a.value_ - n); }
  friend constexpr Rep operator-(Strong a, Strong b) { return a.value_ - b.value_; }
  constexpr Strong& operator+=(Rep n) {
    value_ += n;
    return *this;
  }
  constexpr Strong& operator++() {
    ++value_;
    return *this;
  }

 private:
  Rep value_ = 0;
};

/// A half-open range [begin, end) of strong integers.
template <typename S>
struct Range {
  S begin;
  S end;
  [[nodiscard]] constexpr typename S::rep size() const { return end - begin; }
  [[nodiscard]] constexpr bool empty() const { return !(begin < end); }
  [[nodiscard]] constexpr bool contains(S x) const { return begin <= x && x < end; }
  [[nodiscard]] constexpr bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
  friend constexpr auto operator<=>(const Range&, const Range&) = default;
};

}  // namespace modeld

template <typename Tag, typename Rep>
struct std::hash<modeld::Strong<Tag, Rep>> {
  std::size_t operator()(modeld::Strong<Tag, Rep> s) const noexcept { return std::hash<Rep>{}(s.get()); }
};

#include "session/likelihood.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace modeld {
namespace {

TEST(Likelihood, OfEqualLogitsIsOneInAsManyAsThereAre) {
  const std::array<float, 4> logits = {2.5F, 2.5F, 2.5F, 2.5F};
  for (Token token = 0; token < 4; ++token) EXPECT_NEAR(negative_log_likelihood(logits, token), std::log(4.0), 1e-12);
}

TEST(Likelihood, OfAllTokensTogetherIsOne) {
  const std::array<float, 5> logits = {-3.0F, 0.25F, 4.0F, 1.0F, -11.0F};
  double sum = 0.0;
  for (Token token = 0; token < 5; ++token) sum += std::exp(-negative_log_likelihood(logits, token));
  EXPECT_NEAR(sum, 1.0, 1e-12);
}

TEST(Likelihood, IsFiniteForLogitsThatExpCannotHold) {
  const std::array<float, 3> logits = {90'000.0F, 89'990.0F, -90'000.0F};
  EXPECT_NEAR(negative_log_likelihood(logits, 0), std::log1p(std::exp(-10.0)), 1e-12);
  EXPECT_NEAR(negative_log_likelihood(logits, 2), 180'000.0, 1e-3);
}

}  // namespace
}  // namespace modeld

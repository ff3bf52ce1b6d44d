#include "conformance/fixture.h"

#include <fmt/format.h>

#include <algorithm>

namespace modeld {
namespace {

constexpr std::string_view kStory =
    "Nobody in the harbour remembered who had built the crane, but everyone knew the sound of its chain. Each morning "
    "Martha walked past the boats, counted seven grey gulls on the wall, and bought two loaves from the baker, whose "
    "oven had been lit since three. The old captain sat by the window with a map of the northern islands and a cup of "
    "black tea. He said that the wind would turn before noon and that the ferry from Grenholm must not sail after it. "
    "Children laughed at him, yet their fathers tied a second rope. When the clouds came over the hill, the first "
    "drops "
    "fell on the market, the flower seller covered her roses with a blue cloth, and a dog ran under the butcher's "
    "table. "
    "By evening the storm had taken four roofs, one mast and the sign of the Golden Anchor, which was found a week "
    "later in a field of barley, far inland, without a scratch. The teacher wrote all of it down in a red notebook. "
    "Years afterwards a visitor asked for that notebook in the library, read it from the first page to the last, and "
    "went away smiling. Since then a photograph of the sign hangs above the door, and whoever enters touches it once. ";

}  // namespace

INSTANTIATE_TEST_SUITE_P(Engine, Rules, testing::ValuesIn(rule_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Engine, KvRules, testing::ValuesIn(kv_cases()), case_name);

void Conformance::SetUp() {
  engine_ = GetParam().engine();
  ASSERT_NE(engine_, nullptr);
  open();
}

void Conformance::TearDown() {
  if (engine_ == nullptr) return;
  engine_->clear_cancel();
  EXPECT_EQ(engine_->check_integrity(), "");
  engine_->close_context();
}

void Conformance::open(std::int32_t cells, std::int32_t sequences, std::int32_t batch) {
  must(engine_->open_context({cells, sequences, GetParam().kv_type, batch, 2}));
  must(engine_->observe({}));
}

std::vector<Token> Conformance::story(std::size_t count) const {
  std::string text(kStory);
  std::vector<Token> all = engine_->tokenize(text, true, false).value();
  while (all.size() < count) {
    const auto more = engine_->tokenize(kStory, false, false).value();
    all.insert(all.end(), more.begin(), more.end());
  }
  all.resize(count);
  return all;
}

Conformance::Unfinished Conformance::unfinished() const {
  Unfinished text;
  text.prompt = story(50);
  const auto codes = tokens(
      " The code of London is 1802. The code of Paris is 4711. The code of Rome is 5530. The code of Cairo is 9264. "
      "Now "
      "again: The code of Paris");
  text.prompt.insert(text.prompt.end(), codes.begin(), codes.end());
  text.tail = tokens(" is 4711. The code of Rome is");
  return text;
}

std::vector<Token> Conformance::tokens(std::string_view text) const {
  return engine_->tokenize(text, false, true).value();
}

std::string Conformance::text(std::span<const Token> tokens) const {
  std::string out;
  for (const Token token : tokens) out += engine_->piece(token);
  return out;
}

void Conformance::must(const Status& status) {
  EXPECT_TRUE(status) << to_text(status.error());
  EXPECT_EQ(engine_->check_integrity(), "");
}

std::vector<BatchToken> Conformance::batch_of(std::span<const Token> tokens, SeqId seq, std::int32_t place) {
  std::vector<BatchToken> batch;
  for (const Token token : tokens) batch.push_back({token, Place(place++), seq, false});
  return batch;
}

Logits Conformance::feed(std::span<const Token> tokens, SeqId seq, std::int32_t start) {
  const auto held = engine_->extent(seq);
  auto batch = batch_of(tokens, seq, held.empty() ? start : held.end.get());
  batch.back().logits = true;
  must(engine_->compute(batch));
  const auto logits = engine_->logits(batch.size() - 1);
  EXPECT_EQ(logits.size(), static_cast<std::size_t>(engine_->geometry().vocabulary));
  return {logits.begin(), logits.end()};
}

std::vector<Logits> Conformance::feed_all(std::span<const Token> tokens, SeqId seq) {
  auto batch = batch_of(tokens, seq, engine_->extent(seq).end.get());
  for (BatchToken& token : batch) token.logits = true;
  must(engine_->compute(batch));
  std::vector<Logits> rows;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto row = engine_->logits(i);
    rows.emplace_back(row.begin(), row.end());
  }
  return rows;
}

Logits Conformance::decode(std::span<const Token> tokens, SeqId seq) {
  Logits last;
  for (const Token token : tokens) last = feed({&token, 1}, seq);
  return last;
}

KvPayload Conformance::take_out(SeqId seq, std::int32_t begin, std::int32_t end) {
  auto payload = engine_->export_range(seq, places(begin, end));
  EXPECT_TRUE(payload) << to_text(payload.error());
  EXPECT_EQ(engine_->check_integrity(), "");
  if (!payload) return {};
  EXPECT_EQ(payload->places, places(begin, end));
  EXPECT_EQ(payload->kv_type, GetParam().kv_type);
  return std::move(*payload);
}

void Conformance::evict(SeqId seq, std::int32_t begin, std::int32_t end) {
  must(engine_->evict(seq, places(begin, end)));
}

void Conformance::admit(SeqId seq, const KvPayload& payload, std::int32_t at) {
  must(engine_->admit(seq, payload, Place(at)));
}

void Conformance::expect_extent(SeqId seq, std::int32_t begin, std::int32_t end) {
  const auto held = engine_->extent(seq);
  if (begin == end) {
    EXPECT_TRUE(held.empty()) << held.begin.get() << " " << held.end.get();
  } else {
    EXPECT_EQ(held, places(begin, end)) << held.begin.get() << " " << held.end.get();
  }
}

std::string Conformance::continue_greedily(Logits logits, SeqId seq, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    const Token next = best(logits);
    if (engine_->is_end(next)) break;
    out += engine_->piece(next);
    logits = feed({&next, 1}, seq);
  }
  return out;
}

void Conformance::expect_near(const Logits& reference, const Logits& logits, std::string_view what) {
  expect_near(std::vector<Logits>(1, reference), std::vector<Logits>(1, logits), what);
}

void Conformance::expect_near(const std::vector<Logits>& reference, const std::vector<Logits>& logits,
                              std::string_view what) {
  ASSERT_EQ(reference.size(), logits.size());
  double sum = 0.0;
  double most = 0.0;
  for (std::size_t row = 0; row < logits.size(); ++row) {
    const double kl = divergence(reference[row], logits[row]);
    sum += kl;
    most = std::max(most, kl);
  }
  EXPECT_LE(most, GetParam().single_row * bound()) << what << ", a single row";
  expect_within(sum / static_cast<double>(logits.size()), bound(), what);
}

void Conformance::expect_near_computed(const Logits& reference, const Logits& logits, std::string_view what) {
  expect_within(divergence(reference, logits), GetParam().computing_bound, what);
}

void Conformance::expect_within(double kl, double bound, std::string_view what) {
  EXPECT_LE(kl, bound) << what;
  fmt::print("  {}: KL {:.2g} (bound {:.2g})\n", what, kl, bound);
}

Conformance::State Conformance::state() {
  State now;
  now.spec = engine_->context();
  for (SeqId seq = 0; seq < now.spec.sequences; ++seq) now.extents.push_back(engine_->extent(seq));
  now.used = engine_->cells_used();
  return now;
}

void Conformance::expect_error(ErrorCode code, std::string_view what, const Error* error) {
  EXPECT_EQ(engine_->check_integrity(), "") << what;
  ASSERT_NE(error, nullptr) << what << " was accepted";
  EXPECT_EQ(code_name(error->code), code_name(code)) << what << ": " << error->message;
  EXPECT_FALSE(error->message.empty()) << what;
}

}  // namespace modeld

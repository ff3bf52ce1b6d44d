#include "base/digest.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace modeld {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// A file that is gone when the test is.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view content)
      : path_(std::filesystem::path(testing::TempDir()) / ("modeld_digest_" + std::to_string(::getpid()))) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The examples of FIPS 180-2, appendix B, and the empty message.
TEST(Sha256, GivesTheKnownVectors) {
  EXPECT_EQ(sha256({}).hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256(bytes_of("abc")).hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")).hex(),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(bytes_of(std::string(1'000'000, 'a'))).hex(),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, OfAFileEqualsThatOfItsBytesAndReportsProgress) {
  const std::string content((std::size_t{5} << 19U) + 17, 'x');  // two and a half pieces
  const TemporaryFile file(content);
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  const auto digest = sha256_file(file.path(), [&](const Progress& p) {
    EXPECT_GE(p.done, done);
    done = p.done;
    total = p.total;
  });
  ASSERT_TRUE(digest);
  EXPECT_EQ(*digest, sha256(bytes_of(content)));
  EXPECT_EQ(done, content.size());
  EXPECT_EQ(total, content.size());
}

TEST(Sha256, OfAFileRefusesWhatIsMissingAndStopsWhenAsked) {
  EXPECT_EQ(sha256_file("/nowhere/at/all").error().code, ErrorCode::file_missing);
  const TemporaryFile file("abc");
  CancelFlag cancel;
  cancel.request();
  EXPECT_EQ(sha256_file(file.path(), {}, &cancel).error().code, ErrorCode::cancelled);
  cancel.clear();
  EXPECT_EQ(sha256_file(file.path(), {}, &cancel).value(), sha256(bytes_of("abc")));
}

// XXH3-128 of the empty input, as xxHash's own tools print it.
TEST(Hasher, WithoutFieldsIsTheEmptyHash) { EXPECT_EQ(Hasher().finish().hex(), "99aa06d3014798d86001c324468d497f"); }

TEST(Hasher, FinishCanBeAskedForAgainAndFieldsGoOnAfterIt) {
  Hasher hasher;
  hasher.text("a");
  const Digest128 first = hasher.finish();
  EXPECT_EQ(hasher.finish(), first);
  EXPECT_EQ(hasher.text("b").finish(), Hasher().text("a").text("b").finish());
  EXPECT_NE(hasher.finish(), first);
}

RC_GTEST_PROP(Hasher, DifferentListsOfTextsGiveDifferentDigests, ()) {
  // Words of one letter, so that without the lengths many lists would run together to the same bytes.
  const auto texts = rc::gen::container<std::vector<std::string>>(
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("a"))));
  const auto a = *texts;
  const auto b = *texts;
  const auto digest = [](const std::vector<std::string>& list) {
    Hasher hasher;
    for (const std::string& text : list) hasher.text(text);
    return hasher.finish();
  };
  RC_ASSERT((digest(a) == digest(b)) == (a == b));
}

RC_GTEST_PROP(Hasher, ValuesEqualTheirBytes, (const std::vector<std::int32_t>& values)) {
  const std::span<const std::int32_t> view(values);
  RC_ASSERT(Hasher().values(view).finish() == Hasher().bytes(std::as_bytes(view)).finish());
}

TEST(Digest128, HexShowsTheHighHalfFirstWithLeadingZeros) {
  EXPECT_EQ((Digest128{0x1, 0xabcdef}.hex()), "00000000000000010000000000abcdef");
  EXPECT_LT((Digest128{1, 9}), (Digest128{2, 0}));
}

}  // namespace
}  // namespace modeld

#include "store/kv_file.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

namespace modeld {
namespace {

constexpr Digest128 kKey{1, 2};
constexpr Digest128 kIdentity{3, 4};

KvPayload payload(std::size_t bytes) {
  KvPayload payload;
  payload.places = {Place(64), Place(164)};
  payload.kv_type = KvType::q8_0;
  for (std::size_t i = 0; i < bytes; ++i) payload.data.push_back(static_cast<std::byte>(i * 7));
  return payload;
}

Result<KvPayload> read(std::span<const std::byte> file) {
  MODELD_TRY(const KvFileHeader header, decode_kv_header(file, file.size()));
  MODELD_TRY_VOID(check_expected(header, kKey, kIdentity));
  const auto body = file.subspan(kKvHeaderBytes);
  return decode_kv_body(header, {body.begin(), body.end()});
}

std::vector<std::byte> file_of(const KvPayload& payload) {
  const KvHeaderBytes head = encode(header_of(kKey, kIdentity, payload));
  std::vector<std::byte> file(head.size() + payload.data.size());
  std::copy(payload.data.begin(), payload.data.end(), std::copy(head.begin(), head.end(), file.begin()));
  return file;
}

TEST(KvFile, GivesBackExactlyWhatWasWritten) {
  const KvPayload written = payload(1000);
  const auto got = read(file_of(written));
  ASSERT_TRUE(got) << to_text(got.error());
  EXPECT_EQ(got->places, written.places);
  EXPECT_EQ(got->kv_type, written.kv_type);
  EXPECT_EQ(got->data, written.data);
}

TEST(KvFile, EveryFlippedBitIsRefused) {
  const std::vector<std::byte> file = file_of(payload(300));
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::vector<std::byte> changed = file;
    changed[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto got = read(changed);
    ASSERT_FALSE(got) << "bit " << bit;
    EXPECT_EQ(got.error().code, ErrorCode::state_damaged);
  }
}

TEST(KvFile, EveryOtherLengthIsRefused) {
  const std::vector<std::byte> file = file_of(payload(300));
  for (std::size_t length = 0; length < file.size(); ++length)
    EXPECT_FALSE(read(std::span(file).first(length))) << length;
  std::vector<std::byte> longer = file;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(read(longer));
}

TEST(KvFile, AnotherBlockOrIdentityIsRefusedWithItsReason) {
  const KvFileHeader header = header_of(kKey, kIdentity, payload(10));
  EXPECT_EQ(check_expected(header, Digest128{1, 3}, kIdentity).error().code, ErrorCode::state_damaged);
  EXPECT_EQ(check_expected(header, kKey, Digest128{3, 5}).error().code, ErrorCode::payload_invalid);
}

TEST(KvFile, WhatNoWriterMeantIsRefusedThoughItsChecksumIsRight) {
  const auto refused = [](auto change) {
    KvFileHeader header = header_of(kKey, kIdentity, payload(10));
    change(header);
    return !decode_kv_header(encode(header), kKvHeaderBytes + 10).has_value();
  };
  EXPECT_TRUE(refused([](KvFileHeader& h) { h.places = {Place(5), Place(5)}; }));
  EXPECT_TRUE(refused([](KvFileHeader& h) { h.places = {Place(-1), Place(5)}; }));
  EXPECT_TRUE(refused([](KvFileHeader& h) { h.kv_type = static_cast<KvType>(9); }));
  EXPECT_TRUE(refused([](KvFileHeader& h) { h.packed = static_cast<KvType>(9); }));
  EXPECT_TRUE(refused([](KvFileHeader& h) { h.raw_bytes = 11; }));
  EXPECT_TRUE(refused([](KvFileHeader& h) { h.stored_bytes = h.raw_bytes = UINT64_MAX; }));
  EXPECT_FALSE(refused([](KvFileHeader&) {}));
}

RC_GTEST_PROP(KvFile, AnyBytesAreRefused, (const std::string& bytes)) {
  RC_ASSERT(!read(std::as_bytes(std::span(bytes))));
}

}  // namespace
}  // namespace modeld

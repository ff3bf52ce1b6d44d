#include "base/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <xxhash.h>

#include <fstream>
#include <memory>
#include <vector>

#include "base/check.h"

namespace modeld {
namespace {

XXH3_state_t* as_state(void* p) { return static_cast<XXH3_state_t*>(p); }

struct EvpFree {
  void operator()(EVP_MD_CTX* ctx) const { EVP_MD_CTX_free(ctx); }
};

class Sha256 {
 public:
  Sha256() : ctx_(EVP_MD_CTX_new()) {
    MODELD_CHECK(ctx_ != nullptr);
    MODELD_CHECK(EVP_DigestInit_ex(ctx_.get(), EVP_sha256(), nullptr) == 1);
  }
  void update(const void* data, std::size_t size) { MODELD_CHECK(EVP_DigestUpdate(ctx_.get(), data, size) == 1); }
  Digest256 finish() {
    Digest256 digest;
    unsigned int size = 0;
    MODELD_CHECK(EVP_DigestFinal_ex(ctx_.get(), digest.bytes.data(), &size) == 1);
    MODELD_CHECK(size == digest.bytes.size());
    return digest;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, EvpFree> ctx_;
};

}  // namespace

std::string Digest128::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

std::string Digest256::hex() const {
  std::string out;
  for (const std::uint8_t b : bytes) out += fmt::format("{:02x}", b);
  return out;
}

Hasher::Hasher() : state_(XXH3_createState()) {
  MODELD_CHECK(state_ != nullptr);
  XXH3_128bits_reset(as_state(state_));
}
Hasher::~Hasher() { XXH3_freeState(as_state(state_)); }

Hasher& Hasher::bytes(std::span<const std::byte> data) {
  number(data.size());
  XXH3_128bits_update(as_state(state_), data.data(), data.size());
  return *this;
}
Hasher& Hasher::text(std::string_view s) { return bytes(std::as_bytes(std::span(s))); }
Hasher& Hasher::number(std::uint64_t n) {
  XXH3_128bits_update(as_state(state_), &n, sizeof n);
  return *this;
}
Hasher& Hasher::digest(const Digest128& d) { return number(d.high).number(d.low); }

Digest128 Hasher::finish() const {
  const XXH128_hash_t h = XXH3_128bits_digest(as_state(state_));
  return Digest128{h.high64, h.low64};
}

Digest128 digest_of(std::span<const std::byte> data) { return Hasher().bytes(data).finish(); }

Digest256 sha256(std::span<const std::byte> data) {
  Sha256 hash;
  hash.update(data.data(), data.size());
  return hash.finish();
}

Result<Digest256> sha256_file(const std::filesystem::path& path, const ProgressSink& progress,
                              const CancelFlag* cancel) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(ErrorCode::file_missing, fmt::format("Cannot open {}.", path.string()));
  std::error_code ec;
  const auto size = std::filesystem::file_size(path, ec);
  if (ec) return fail(ErrorCode::io_failed, fmt::format("Cannot read the size of {}.", path.string()));
  Sha256 hash;
  std::vector<char> buffer(std::size_t{1} << 20U);
  std::uint64_t done = 0;
  while (in) {
    if (cancel != nullptr && cancel->requested()) return fail(ErrorCode::cancelled, "Cancelled.");
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto got = static_cast<std::size_t>(in.gcount());
    hash.update(buffer.data(), got);
    done += got;
    report(progress, "checking the model file", done, size, "bytes");
  }
  if (in.bad() || done != size) return fail(ErrorCode::io_failed, fmt::format("Reading {} failed.", path.string()));
  return hash.finish();
}

}  // namespace modeld

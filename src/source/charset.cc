#include "source/charset.h"

#include <iconv.h>
#include <uchardet.h>

#include <cerrno>
#include <cstdint>
#include <memory>

namespace modeld {
namespace {

struct DetectorFree {
  void operator()(uchardet* d) const { uchardet_delete(d); }
};

class Converter {
 public:
  explicit Converter(const std::string& from) : handle_(iconv_open("UTF-8", from.c_str())) {}
  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;
  ~Converter() {
    if (open()) iconv_close(handle_);
  }
  // iconv_open's failure value is (iconv_t)-1.
  [[nodiscard]] bool open() const { return reinterpret_cast<std::intptr_t>(handle_) != -1; }
  [[nodiscard]] iconv_t get() const { return handle_; }

 private:
  iconv_t handle_;
};

}  // namespace

std::string detect_charset(std::string_view bytes) {
  const std::unique_ptr<uchardet, DetectorFree> detector(uchardet_new());
  if (uchardet_handle_data(detector.get(), bytes.data(), bytes.size()) != 0) return {};
  uchardet_data_end(detector.get());
  return uchardet_get_charset(detector.get());
}

tl::expected<std::string, ConversionFailure> to_utf8(std::string_view bytes, const std::string& charset) {
  const Converter converter(charset);
  if (!converter.open()) return tl::unexpected(ConversionFailure{false, 0});
  std::string out(bytes.size() + bytes.size() / 8 + 64, '\0');
  std::size_t written = 0;
  // iconv's signature lacks const; it does not write to its input.
  char* in = const_cast<char*>(bytes.data());
  std::size_t in_left = bytes.size();
  bool flushing = false;
  while (true) {
    char* to = out.data() + written;
    std::size_t room = out.size() - written;
    const std::size_t rc = flushing ? iconv(converter.get(), nullptr, nullptr, &to, &room)
                                    : iconv(converter.get(), &in, &in_left, &to, &room);
    const int error = errno;
    written = out.size() - room;
    if (rc != static_cast<std::size_t>(-1)) {
      if (flushing) break;
      flushing = true;
    } else if (error == E2BIG) {
      out.resize(out.size() + out.size() / 2 + 64);
    } else {
      return tl::unexpected(ConversionFailure{true, bytes.size() - in_left});
    }
  }
  out.resize(written);
  return out;
}

}  // namespace modeld

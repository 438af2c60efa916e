// Files read in pieces: plain, gzip, several gzip members, cut and damaged.
#include <doctest/doctest.h>

#include <array>
#include <fstream>
#include <vector>

#include <zlib.h>

#include "calibration/byte_stream.hpp"
#include "sim/base/diagnostic.hpp"
#include "tests/support/program.hpp"

using stepcast::UserError;
using stepcast::calibration::ByteStream;
using stepcast::test::TemporaryDirectory;

TEST_SUITE_BEGIN("calibration");

namespace {

std::string gzip(const std::string& text) {
  std::string out(compressBound(text.size()) + 64, '\0');
  z_stream z{};
  REQUIRE(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(out.size() - z.avail_out);
  deflateEnd(&z);
  return out;
}

std::string all_of(ByteStream& bytes) {
  std::string text;
  std::array<char, 777> piece{};
  while (const std::size_t count = bytes.read(piece)) text.append(piece.data(), count);
  return text;
}

}  // namespace

TEST_CASE("byte stream: plain, compressed, two members, padded: the same text") {
  const TemporaryDirectory place;
  std::string text;
  for (int i = 0; i < 400000; ++i) text += static_cast<char>('a' + (i % 1000 * (i % 1000) + i / 7) % 26);
  const auto write = [&](const char* name, const std::string& content) {
    const std::string path = (place.path() / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  };
  ByteStream plain{write("plain", text)};
  CHECK(all_of(plain) == text);
  CHECK_FALSE(plain.compressed());
  ByteStream one{write("one.gz", gzip(text))};
  CHECK(all_of(one) == text);
  CHECK(one.compressed());
  CHECK_FALSE(one.cut());
  CHECK(one.bytes_read() == static_cast<std::int64_t>(text.size()));
  ByteStream two{write("two.gz", gzip(text.substr(0, 1000)) + gzip(text.substr(1000)) + std::string(512, '\0'))};
  CHECK(all_of(two) == text);
  CHECK_FALSE(two.cut());
}

TEST_CASE("byte stream: a cut stream gives what is there and says so, a damaged one is an error") {
  const TemporaryDirectory place;
  const std::string path = (place.path() / "a.gz").string();
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(i * 7919);
  const std::string whole = gzip(text);
  std::ofstream(path, std::ios::binary) << whole.substr(0, whole.size() / 2);
  ByteStream cut{path};
  const std::string got = all_of(cut);
  CHECK(cut.cut());
  CHECK(got.size() > 1000);
  CHECK(text.starts_with(got));
  std::string damaged = whole;
  for (std::size_t i = whole.size() / 2; i < whole.size() / 2 + 40; ++i) damaged[i] = static_cast<char>(damaged[i] ^ 0x5a);
  std::ofstream(path, std::ios::binary) << damaged;
  ByteStream bad{path};
  CHECK_THROWS_AS(all_of(bad), UserError);
  CHECK_THROWS_AS(ByteStream{place.path().string()}, UserError);
  CHECK_THROWS_AS(ByteStream{(place.path() / "absent").string()}, UserError);
}

// One byte changed, one byte more: another fingerprint. How much was read before does not matter.
TEST_CASE("byte stream: the fingerprint is the file's") {
  const TemporaryDirectory place;
  const auto print_of = [&](const std::string& content, bool read) {
    const std::string path = (place.path() / "f").string();
    std::ofstream(path, std::ios::binary) << content;
    ByteStream bytes{path};
    std::array<char, 10> piece{};
    if (read) bytes.read(piece);
    return bytes.fingerprint();
  };
  const std::string text(3000001, 'x');
  std::string other = text;
  other[2999999] = 'y';
  CHECK(print_of(text, false) == print_of(text, true));
  CHECK(print_of(text, false) != print_of(other, false));
  CHECK(print_of("abc", false) != print_of(std::string{"abc\0", 4}, false));
}

TEST_SUITE_END();

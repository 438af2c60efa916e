// calibration/byte_stream.hpp — a file read piece by piece, plain or gzip (told by its first bytes, not its name), with a
// fingerprint of the bytes as they lie on the disk.
//
// Source   RFC 1952 (gzip; several members in a row are one stream), by zlib
// Ignores  other compressions; checks of what a cut file would have had
// Tests    unit/byte_stream_test
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace stepcast::calibration {

class ByteStream {
 public:
  // Throws UserError: missing, a directory, unreadable.
  explicit ByteStream(const std::string& path);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Fills up to the span's size; 0 at the end. Throws UserError where compressed bytes are damaged.
  std::size_t read(std::span<char> into);

  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] bool compressed() const;
  [[nodiscard]] bool cut() const;                    // the compressed stream ended early
  [[nodiscard]] std::int64_t bytes_read() const;     // handed out, uncompressed
  [[nodiscard]] std::int64_t bytes_on_disk() const;  // read so far
  // Of all bytes on the disk: reads the rest of the file. 16 hexadecimal digits.
  std::string fingerprint();

 private:
  class Source;
  std::unique_ptr<Source> source_;
};

// Of a file that another library reads.
std::string file_fingerprint(const std::string& path);

}  // namespace stepcast::calibration

#include "calibration/byte_stream.hpp"

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <zlib.h>

#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/base/hash.hpp"

namespace stepcast::calibration {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20U;  // a multiple of the fingerprint's words
constexpr int kGzipWindow = 15 + 16;                   // zlib: the largest window, gzip's header

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

class ByteStream::Source {
 public:
  explicit Source(const std::string& path) : path_{path}, raw_(kPiece) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) refuse("is a directory, not a file");
    file_.reset(std::fopen(path.c_str(), "rb"));
    if (!file_) refuse(std::filesystem::exists(path, ignored) ? "cannot be read by this user" : "no such file");
    fill();
    gzip_ = end_ >= 2 && static_cast<unsigned char>(raw_[0]) == 0x1f && static_cast<unsigned char>(raw_[1]) == 0x8b;
    if (gzip_ && inflateInit2(&inflater_, kGzipWindow) != Z_OK) throw SystemError("zlib cannot start");
  }
  ~Source() {
    if (gzip_) inflateEnd(&inflater_);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  std::size_t read(std::span<char> into) {
    const std::size_t count = gzip_ ? inflated(into) : plain(into);
    handed_ += static_cast<std::int64_t>(count);
    return count;
  }

  std::string fingerprint() {
    while (fill()) {}
    return fmt::format("{:016x}", hash_.value());
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool compressed() const { return gzip_; }
  [[nodiscard]] bool cut() const { return cut_; }
  [[nodiscard]] std::int64_t handed() const { return handed_; }
  [[nodiscard]] std::int64_t on_disk() const { return on_disk_; }

 private:
  [[noreturn]] void refuse(std::string problem) const {
    throw UserError(Diagnostic{.where = {path_, 0, 0}, .problem = std::move(problem)});
  }

  // The next piece of the file; false at its end.
  bool fill() {
    begin_ = 0;
    end_ = std::fread(raw_.data(), 1, raw_.size(), file_.get());
    if (end_ == 0 && std::ferror(file_.get()) != 0) throw SystemError(path_ + ": the disk refused to read it");
    std::memset(raw_.data() + end_, 0, raw_.size() - end_);
    for (std::size_t i = 0; i < end_; i += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, raw_.data() + i, sizeof word);
      hash_.add(word);
    }
    hash_.add(static_cast<std::uint64_t>(end_));
    on_disk_ += static_cast<std::int64_t>(end_);
    return end_ > 0;
  }

  std::size_t plain(std::span<char> into) {
    if (begin_ == end_ && !fill()) return 0;
    const std::size_t count = std::min(into.size(), end_ - begin_);
    std::memcpy(into.data(), raw_.data() + begin_, count);
    begin_ += count;
    return count;
  }

  std::size_t inflated(std::span<char> into) {
    inflater_.next_out = reinterpret_cast<Bytef*>(into.data());
    inflater_.avail_out = static_cast<uInt>(into.size());
    while (inflater_.avail_out == into.size() && !finished_) {
      if (begin_ == end_ && !fill()) {
        cut_ = !between_;
        finished_ = true;
        break;
      }
      if (between_ && raw_[begin_] == 0) {  // tapes and disks pad with zeros
        ++begin_;
        continue;
      }
      between_ = false;
      inflater_.next_in = reinterpret_cast<Bytef*>(raw_.data() + begin_);
      inflater_.avail_in = static_cast<uInt>(end_ - begin_);
      const int status = inflate(&inflater_, Z_NO_FLUSH);
      begin_ = end_ - inflater_.avail_in;
      if (status == Z_STREAM_END) {
        inflateReset(&inflater_);
        between_ = true;
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        refuse(fmt::format("damaged gzip data after {} bytes of content", handed_ + static_cast<std::int64_t>(into.size() - inflater_.avail_out)));
      }
    }
    return into.size() - inflater_.avail_out;
  }

  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::vector<char> raw_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool gzip_ = false;
  bool between_ = false;  // a member ended, none has begun
  bool finished_ = false;
  bool cut_ = false;
  z_stream inflater_{};
  Fingerprint hash_;
  std::int64_t handed_ = 0;
  std::int64_t on_disk_ = 0;
};

ByteStream::ByteStream(const std::string& path) : source_{std::make_unique<Source>(path)} {}
ByteStream::~ByteStream() = default;
std::size_t ByteStream::read(std::span<char> into) { return source_->read(into); }
const std::string& ByteStream::path() const { return source_->path(); }
bool ByteStream::compressed() const { return source_->compressed(); }
bool ByteStream::cut() const { return source_->cut(); }
std::int64_t ByteStream::bytes_read() const { return source_->handed(); }
std::int64_t ByteStream::bytes_on_disk() const { return source_->on_disk(); }
std::string ByteStream::fingerprint() { return source_->fingerprint(); }

std::string file_fingerprint(const std::string& path) { return ByteStream{path}.fingerprint(); }

}  // namespace stepcast::calibration

// Files in and out: whole or not at all, devices written in place, links kept, nothing read without end.
#include <sys/stat.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "tests/support/program.hpp"

using namespace stepcast;
namespace fs = std::filesystem;

namespace {

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator{folder}, fs::directory_iterator{}));
}

}  // namespace

TEST_SUITE_BEGIN("unit");

TEST_CASE("file: what is written is read back, and nothing else is left in the folder") {
  const test::TemporaryDirectory folder;
  const std::string path = folder.path() / "a.txt";
  write_file(path, "first");
  write_file(path, "second");
  CHECK(read_file(path) == "second");
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("file: without commit the old content stays and the new one leaves no trace") {
  const test::TemporaryDirectory folder;
  const std::string path = folder.path() / "a.txt";
  write_file(path, "old");
  {
    OutputFile file{path};
    file.write("half of");
  }
  CHECK(read_file(path) == "old");
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("file: a pipe is written in place, not replaced by a file") {
  const test::TemporaryDirectory folder;
  const std::string path = folder.path() / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  std::string got;
  std::thread reader{[&] { got = test::text_of(path); }};
  write_file(path, "through the pipe");
  reader.join();
  CHECK(got == "through the pipe");
  CHECK(fs::is_fifo(path));
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("file: a link stays a link, its target gets the content") {
  const test::TemporaryDirectory folder;
  const fs::path target = folder.path() / "target";
  const fs::path link = folder.path() / "link";
  write_file(target, "old");
  fs::create_symlink(target, link);
  write_file(link, "new");
  CHECK(fs::is_symlink(link));
  CHECK(read_file(target) == "new");
}

TEST_CASE("file: a folder and a missing folder are refused as the system's failure") {
  const test::TemporaryDirectory folder;
  CHECK_THROWS_AS(write_file(folder.path(), "x"), SystemError);
  CHECK_THROWS_AS(write_file(folder.path() / "none" / "a", "x"), SystemError);
  CHECK(files_in(folder.path()) == 0);
}

TEST_CASE("file: an input beyond the limit is refused, an endless one too") {
  const test::TemporaryDirectory folder;
  const std::string path = folder.path() / "a.txt";
  write_file(path, std::string(1000, 'x'));
  CHECK(read_file(path, 1000).size() == 1000);
  CHECK_THROWS_AS(read_file(path, 999), UserError);
  if (fs::exists("/dev/zero")) CHECK_THROWS_AS(read_file("/dev/zero", 1 << 20), UserError);
}

TEST_SUITE_END();

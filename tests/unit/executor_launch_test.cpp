// How processes learn which they are and find each other.
#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <map>
#include <thread>

#include "executor/common/place.hpp"
#include "executor/common/rendezvous.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"

using namespace stepcast;
using namespace stepcast::executor;

TEST_SUITE_BEGIN("unit");

namespace {

ProcessPlace place(const std::map<std::string, std::string>& environment) {
  return find_place([&](const char* name) -> std::optional<std::string> {
    const auto it = environment.find(name);
    return it == environment.end() ? std::nullopt : std::optional{it->second};
  });
}

// Everybody puts a value and reads all others'.
void exchange(const std::string& address, std::uint32_t size) {
  std::vector<std::string> seen(size);
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      const auto rendezvous = make_rendezvous(address, r, std::chrono::seconds{20});
      rendezvous->put("id." + std::to_string(r), std::string{"value\n\0of ", 10} + std::to_string(r));
      for (std::uint32_t other = 0; other < size; ++other) seen[r] += rendezvous->get("id." + std::to_string(other)) + ';';
      meet(*rendezvous, "end", r, size);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t r = 0; r < size; ++r) {
    CHECK(seen[r] == seen[0]);
    CHECK(seen[r].find(std::string{"\0of ", 4} + std::to_string(size - 1)) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("place: Open MPI, Slurm and torchrun say who one is, without them one is alone") {
  CHECK(place({}).size == 1);
  CHECK(place({{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}}).local_rank == 1);
  CHECK(place({{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "6"}}).rank == 5);
  const ProcessPlace open_mpi = place({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}, {"SLURM_PROCID", "7"}, {"SLURM_NTASKS", "8"}});
  CHECK(open_mpi.launcher == "Open MPI");
  CHECK(open_mpi.rank == 1);
  CHECK_THROWS_WITH_AS(place({{"RANK", "8"}, {"WORLD_SIZE", "8"}}), doctest::Contains("not below WORLD_SIZE"), UserError);
  CHECK_THROWS_WITH_AS(place({{"RANK", "x"}, {"WORLD_SIZE", "8"}}), doctest::Contains("RANK"), UserError);
}

TEST_CASE("rendezvous: processes exchange values over a folder and over TCP") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "stepcast-rendezvous-test";
  std::filesystem::remove_all(folder);
  exchange("file:" + folder.string(), 4);
  std::filesystem::remove_all(folder);
  // A port that two test programs at once do not share.
  exchange("tcp:127.0.0.1:" + std::to_string(20'000 + ::getpid() % 20'000), 4);
}

TEST_CASE("rendezvous: who waits in vain is told for what, bad addresses are refused") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "stepcast-rendezvous-none";
  const auto rendezvous = make_rendezvous("file:" + folder.string(), 0, std::chrono::seconds{0});
  CHECK_THROWS_WITH_AS(rendezvous->get("nothing"), doctest::Contains("'nothing'"), SystemError);
  std::filesystem::remove_all(folder);
  for (const char* address : {"", "file:", "tcp:host", "tcp::1", "tcp:host:0", "tcp:host:99999", "http://x"}) {
    CAPTURE(address);
    CHECK_THROWS_AS(make_rendezvous(address, 0, std::chrono::seconds{1}), UserError);
  }
}

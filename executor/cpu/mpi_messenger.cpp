#include "executor/cpu/mpi_messenger.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <thread>

#include "sim/base/check.hpp"
#include "sim/base/file.hpp"

namespace stepcast::executor {
namespace {

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  throw SystemError(std::string{call} + ": " + text.data());
}
#define STEPCAST_MPI(call) check(call, #call)

// Polls: without pause for as long as waking from a sleep takes (virtual machines: 60 us), which at worst doubles what a wait costs, then from
// short sleeps. Not by sched_yield: on a core that others use it gives away a whole time
// slice (milliseconds), while a sleeper that wakes is served at once.
class Request : public Transfer {
 public:
  Request(MPI_Request request, const std::atomic<bool>& stopped) : request_{request}, stopped_{stopped} {}
  ~Request() override {
    if (request_ != MPI_REQUEST_NULL) MPI_Request_free(&request_);
  }
  void wait() override {
    constexpr std::chrono::microseconds kWithoutPause{60};
    constexpr std::chrono::microseconds kLongest{50};
    std::chrono::microseconds pause{2};
    int done = 0;
    const auto begin = std::chrono::steady_clock::now();
    while (true) {
      STEPCAST_MPI(MPI_Test(&request_, &done, MPI_STATUS_IGNORE));
      if (done != 0) return;
      if (stopped_) throw Stopped{};
      if (std::chrono::steady_clock::now() - begin < kWithoutPause) continue;
      std::this_thread::sleep_for(pause);
      pause = std::min(kLongest, pause + std::chrono::microseconds{1});
    }
  }

 private:
  MPI_Request request_;
  const std::atomic<bool>& stopped_;
};

int count_of(std::size_t bytes) {
  SIM_CHECK(bytes <= static_cast<std::size_t>(std::numeric_limits<int>::max()), bytes);  // callers cut into pieces
  return static_cast<int>(bytes);
}

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Which boot of which machine: processes that share it share the steady clock, also in other network namespaces.
std::string boot_id() {
  try {
    return read_file("/proc/sys/kernel/random/boot_id");
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace

MpiSession::MpiSession() {
  ::prctl(PR_SET_TIMERSLACK, 1'000UL);  // ns: sleeps end when they are due; threads inherit it
  int provided = MPI_THREAD_SINGLE;
  STEPCAST_MPI(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided));
  if (provided < MPI_THREAD_MULTIPLE) throw SystemError("this MPI library does not let several threads call it (MPI_THREAD_MULTIPLE)");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int value = 0;
  STEPCAST_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &value));
  rank_ = static_cast<std::uint32_t>(value);
  STEPCAST_MPI(MPI_Comm_size(MPI_COMM_WORLD, &value));
  size_ = static_cast<std::uint32_t>(value);
}

MpiSession::~MpiSession() { MPI_Finalize(); }

std::string MpiSession::library() const {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string whole{text.data()};
  return whole.substr(0, whole.find(','));
}

std::int64_t MpiSession::clock_offset_ns() const {
  constexpr int kRounds = 20;
  constexpr int kTag = 1;
  std::array<char, 40> own{};
  boot_id().copy(own.data(), own.size() - 1);
  std::array<char, 40> first = own;
  STEPCAST_MPI(MPI_Bcast(first.data(), static_cast<int>(first.size()), MPI_CHAR, 0, MPI_COMM_WORLD));
  std::int64_t offset = 0;
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t other = 1; other < size_; ++other) {
    if (rank_ != 0 && rank_ != other) continue;
    for (int round = 0; round < kRounds; ++round) {
      std::int64_t theirs = 0;
      if (rank_ == 0) {
        STEPCAST_MPI(MPI_Recv(&theirs, 1, MPI_INT64_T, static_cast<int>(other), kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        const std::int64_t mine = steady_ns();
        STEPCAST_MPI(MPI_Send(&mine, 1, MPI_INT64_T, static_cast<int>(other), kTag, MPI_COMM_WORLD));
      } else {
        const std::int64_t sent = steady_ns();
        STEPCAST_MPI(MPI_Send(&sent, 1, MPI_INT64_T, 0, kTag, MPI_COMM_WORLD));
        STEPCAST_MPI(MPI_Recv(&theirs, 1, MPI_INT64_T, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        const std::int64_t back = steady_ns();
        if (back - sent < shortest) {
          shortest = back - sent;
          offset = theirs - (sent + (back - sent) / 2);
        }
      }
    }
  }
  return own == first && own[0] != '\0' ? 0 : offset;
}

void MpiSession::abort(int status) const {
  MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

MpiMessenger::MpiMessenger(std::size_t spaces) : spaces_(spaces, MPI_COMM_NULL) {
  for (MPI_Comm& space : spaces_) {
    STEPCAST_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &space));
    MPI_Comm_set_errhandler(space, MPI_ERRORS_RETURN);
  }
  void* most = nullptr;
  int found = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&most), &found);
  if (found != 0) most_tags_ = *static_cast<int*>(most);
}

MpiMessenger::~MpiMessenger() {
  for (MPI_Comm& space : spaces_) MPI_Comm_free(&space);
}

std::unique_ptr<Transfer> MpiMessenger::send(RankId to, Channel channel, std::span<const std::byte> bytes) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int tag = static_cast<int>(channel.sequence % static_cast<std::uint32_t>(most_tags_));
  STEPCAST_MPI(MPI_Issend(bytes.data(), count_of(bytes.size()), MPI_BYTE, static_cast<int>(to.value()), tag, spaces_[channel.space], &request));
  return std::make_unique<Request>(request, stopped_);
}

std::unique_ptr<Transfer> MpiMessenger::receive(RankId from, Channel channel, std::span<std::byte> bytes) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int tag = static_cast<int>(channel.sequence % static_cast<std::uint32_t>(most_tags_));
  STEPCAST_MPI(MPI_Irecv(bytes.data(), count_of(bytes.size()), MPI_BYTE, static_cast<int>(from.value()), tag, spaces_[channel.space], &request));
  return std::make_unique<Request>(request, stopped_);
}

void MpiMessenger::barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  STEPCAST_MPI(MPI_Ibarrier(spaces_.front(), &request));
  Request{request, stopped_}.wait();
}

}  // namespace stepcast::executor

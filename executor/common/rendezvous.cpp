#include "executor/common/rendezvous.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"

namespace stepcast::executor {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPause{20};

[[noreturn]] void too_late(const std::string& key, std::chrono::seconds timeout) {
  throw SystemError("rendezvous: nobody gave '" + key + "' within " + std::to_string(timeout.count()) + " s; did a process fail to start?");
}

class FileRendezvous : public Rendezvous {
 public:
  FileRendezvous(std::string folder, std::chrono::seconds timeout) : folder_{std::move(folder)}, timeout_{timeout} {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) throw SystemError(folder_ + ": " + error.message());
  }
  void put(const std::string& key, std::string_view value) override { write_file(path(key), value); }  // appears whole
  std::string get(const std::string& key) override {
    const Clock::time_point end = Clock::now() + timeout_;
    while (!std::filesystem::exists(path(key))) {
      if (Clock::now() > end) too_late(key, timeout_);
      std::this_thread::sleep_for(kPause);
    }
    return read_file(path(key));
  }

 private:
  [[nodiscard]] std::string path(const std::string& key) const { return folder_ + "/rendezvous." + key; }
  std::string folder_;
  std::chrono::seconds timeout_;
};

// A connected socket; sends and receives whole messages: a length of four bytes, then as many.
class Line {
 public:
  explicit Line(int socket) : socket_{socket} {}
  Line(Line&& other) noexcept : socket_{std::exchange(other.socket_, -1)} {}
  Line& operator=(Line&&) = delete;
  ~Line() {
    if (socket_ >= 0) ::close(socket_);
  }

  bool send(std::string_view text) {
    const auto size = htonl(static_cast<std::uint32_t>(text.size()));
    std::string whole(sizeof size, '\0');
    std::memcpy(whole.data(), &size, sizeof size);
    whole += text;
    for (std::size_t at = 0; at < whole.size();) {
      const ssize_t done = ::send(socket_, whole.data() + at, whole.size() - at, MSG_NOSIGNAL);
      if (done <= 0) return false;
      at += static_cast<std::size_t>(done);
    }
    return true;
  }
  std::optional<std::string> receive() {
    std::uint32_t size = 0;
    if (!fill(reinterpret_cast<char*>(&size), sizeof size)) return std::nullopt;
    constexpr std::uint32_t kMost = 1U << 20U;
    if (ntohl(size) > kMost) return std::nullopt;
    std::string text(ntohl(size), '\0');
    if (!fill(text.data(), text.size())) return std::nullopt;
    return text;
  }

 private:
  bool fill(char* into, std::size_t size) {
    for (std::size_t at = 0; at < size;) {
      const ssize_t got = ::recv(socket_, into + at, size - at, 0);
      if (got <= 0) return false;
      at += static_cast<std::size_t>(got);
    }
    return true;
  }
  int socket_;
};

// Rank 0's table, and a thread that takes and answers: "P key\n value" and "G key" (an empty answer: not yet).
class TcpServer {
 public:
  explicit TcpServer(std::uint16_t port) : socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    const int yes = 1;
    ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_ANY);
    if (::bind(socket_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 || ::listen(socket_, 128) != 0) {
      const std::string reason = std::strerror(errno);
      ::close(socket_);
      throw SystemError("rendezvous: port " + std::to_string(port) + ": " + reason);
    }
    accepts_ = std::thread{[this] {
      while (true) {
        const int peer = ::accept(socket_, nullptr, nullptr);
        if (peer < 0) return;
        const std::lock_guard lock{mutex_};
        peers_.push_back(peer);
        ++open_;
        serves_.emplace_back([this, peer] { serve(peer); });
      }
    }};
  }
  // Others may still ask: until they have hung up, or for a while.
  ~TcpServer() {
    constexpr std::chrono::seconds kGrace{10};
    {
      std::unique_lock lock{mutex_};
      changed_.wait_for(lock, kGrace, [this] { return open_ == 0; });
      for (const int peer : peers_) ::shutdown(peer, SHUT_RDWR);
    }
    ::shutdown(socket_, SHUT_RDWR);
    accepts_.join();
    for (std::thread& thread : serves_) thread.join();
    ::close(socket_);
  }
  TcpServer(const TcpServer&) = delete;
  TcpServer& operator=(const TcpServer&) = delete;

 private:
  void serve(int peer) {
    Line line{peer};
    while (const std::optional<std::string> message = line.receive()) {
      std::string answer = " ";
      std::unique_lock lock{mutex_};
      const std::size_t end = message->find('\n');
      const std::string key = message->substr(2, end == std::string::npos ? end : end - 2);
      if (message->front() == 'P' && end != std::string::npos) {
        table_[key] = message->substr(end + 1);
      } else if (const auto it = table_.find(key); it != table_.end()) {
        answer = "=" + it->second;
      }
      lock.unlock();
      if (!line.send(answer)) break;
    }
    const std::lock_guard lock{mutex_};
    --open_;
    changed_.notify_all();
  }

  int socket_;
  std::condition_variable changed_;
  int open_ = 0;
  std::mutex mutex_;
  std::map<std::string, std::string> table_;
  std::vector<int> peers_;
  std::vector<std::thread> serves_;
  std::thread accepts_;
};

class TcpRendezvous : public Rendezvous {
 public:
  TcpRendezvous(const std::string& host, std::uint16_t port, std::uint32_t rank, std::chrono::seconds timeout) : timeout_{timeout} {
    if (rank == 0) server_ = std::make_unique<TcpServer>(port);
    const Clock::time_point end = Clock::now() + timeout;
    while (!connect(rank == 0 ? "127.0.0.1" : host, port)) {
      if (Clock::now() > end) throw SystemError("rendezvous: " + host + ':' + std::to_string(port) + " does not answer");
      std::this_thread::sleep_for(kPause);
    }
  }
  void put(const std::string& key, std::string_view value) override { ask("P " + key + '\n' + std::string{value}); }
  std::string get(const std::string& key) override {
    const Clock::time_point end = Clock::now() + timeout_;
    while (true) {
      const std::string answer = ask("G " + key);
      if (answer.front() == '=') return answer.substr(1);
      if (Clock::now() > end) too_late(key, timeout_);
      std::this_thread::sleep_for(kPause);
    }
  }

 private:
  bool connect(const std::string& host, std::uint16_t port) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return false;
    const int socket = ::socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, 0);
    const bool connected = socket >= 0 && ::connect(socket, found->ai_addr, found->ai_addrlen) == 0;
    ::freeaddrinfo(found);
    if (connected) {
      line_.emplace(socket);
    } else if (socket >= 0) {
      ::close(socket);
    }
    return connected;
  }
  std::string ask(const std::string& message) {
    if (!line_->send(message)) throw SystemError("rendezvous: rank 0 has gone");
    std::optional<std::string> answer = line_->receive();
    if (!answer || answer->empty()) throw SystemError("rendezvous: rank 0 has gone");
    return *std::move(answer);
  }

  std::chrono::seconds timeout_;
  std::unique_ptr<TcpServer> server_;
  std::optional<Line> line_;  // hangs up before the server waits for everybody to
};

}  // namespace

std::unique_ptr<Rendezvous> make_rendezvous(const std::string& address, std::uint32_t rank, std::chrono::seconds timeout) {
  if (address.starts_with("file:") && address.size() > 5) return std::make_unique<FileRendezvous>(address.substr(5), timeout);
  if (address.starts_with("tcp:")) {
    const std::size_t colon = address.rfind(':');
    const std::string port = address.substr(colon + 1);
    const bool digits = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
    if (colon > 4 && digits && std::stoi(port) > 0 && std::stoi(port) < 65536) {
      return std::make_unique<TcpRendezvous>(address.substr(4, colon - 4), static_cast<std::uint16_t>(std::stoi(port)), rank, timeout);
    }
  }
  throw UserError(Diagnostic{.path = "--rendezvous", .problem = "not understood", .expected = "file:FOLDER or tcp:HOST:PORT", .got = address});
}

void meet(Rendezvous& rendezvous, const std::string& name, std::uint32_t rank, std::uint32_t size) {
  rendezvous.put(name + '.' + std::to_string(rank), "here");
  for (std::uint32_t other = 0; other < size; ++other) rendezvous.get(name + '.' + std::to_string(other));
}

}  // namespace stepcast::executor

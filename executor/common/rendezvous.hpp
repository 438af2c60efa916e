// executor/common/rendezvous.hpp — how processes that nothing joins yet tell each other small things: NCCL's ids, and that all are here.
//
// Over a folder that all see (`file:FOLDER`), or over TCP to rank 0 (`tcp:HOST:PORT`, torchrun's MASTER_ADDR and MASTER_PORT): rank 0
// keeps what was put and answers who asks. Every wait ends after the timeout, naming the key.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace stepcast::executor {

class Rendezvous {
 public:
  Rendezvous() = default;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;
  virtual ~Rendezvous() = default;

  // A key is put once.
  virtual void put(const std::string& key, std::string_view value) = 0;
  // Waits until somebody has put it. Throws SystemError after the timeout.
  virtual std::string get(const std::string& key) = 0;
};

// Throws UserError for an address that is neither form.
std::unique_ptr<Rendezvous> make_rendezvous(const std::string& address, std::uint32_t rank, std::chrono::seconds timeout);

// Ends when all `size` processes have called it with this name.
void meet(Rendezvous& rendezvous, const std::string& name, std::uint32_t rank, std::uint32_t size);

}  // namespace stepcast::executor

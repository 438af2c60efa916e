#include "executor/cuda/cudnn/api.hpp"

#include <dlfcn.h>

#include <type_traits>

namespace stepcast::executor::cudnn {

std::string version_text(std::size_t version) {
  // 9 and later: 10000 major + 100 minor + patch; before: 1000 major.
  const std::size_t unit = version < 10000 ? 1000 : 10000;
  return std::to_string(version / unit) + '.' + std::to_string(version % unit / 100) + '.' + std::to_string(version % 100);
}

std::optional<Api> load(std::string& why_not) {
  constexpr const char* kLibrary = "libcudnn.so.9";
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    why_not = std::string{kLibrary} + " is not here";
    return std::nullopt;
  }
  Api api;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr && why_not.empty()) why_not = std::string{kLibrary} + " has no " + name;
  };
  why_not.clear();
  find(api.version, "cudnnGetVersion");
  find(api.error_string, "cudnnGetErrorString");
  find(api.last_error, "cudnnGetLastErrorString");
  find(api.create, "cudnnCreate");
  find(api.destroy, "cudnnDestroy");
  find(api.set_stream, "cudnnSetStream");
  find(api.create_descriptor, "cudnnBackendCreateDescriptor");
  find(api.destroy_descriptor, "cudnnBackendDestroyDescriptor");
  find(api.set_attribute, "cudnnBackendSetAttribute");
  find(api.get_attribute, "cudnnBackendGetAttribute");
  find(api.finalize, "cudnnBackendFinalize");
  find(api.execute, "cudnnBackendExecute");
  if (why_not.empty()) return api;
  ::dlclose(library);
  return std::nullopt;
}

}  // namespace stepcast::executor::cudnn

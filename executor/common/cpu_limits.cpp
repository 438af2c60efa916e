#include "executor/common/cpu_limits.hpp"

#include "sim/base/diagnostic.hpp"

namespace stepcast::executor {

void require_cpu_can_play(const plan::Plan& plan, const std::string& file) {
  const auto refuse = [&](const std::string& what, plan::Dtype dtype) {
    throw UserError(Diagnostic{.where = {file, 0, 0}, .problem = what + " is in " + plan::name_of(dtype),
                               .expected = "fp32, which CPUs compute in", .hint = "training.precision: fp32"});
  };
  for (const plan::Program& program : plan.programs) {
    for (const plan::Kernel& kernel : program.kernels) {
      if ((kernel.gemm || kernel.attention) && kernel.dtype != plan::Dtype::kFp32) refuse("a matrix product", kernel.dtype);
    }
    for (const plan::Instruction& i : program.instructions) {
      const auto* c = std::get_if<plan::Collective>(&i.body);
      if (c != nullptr && !can_add(c->dtype)) refuse("collective '" + program.labels[i.label.index()] + "'", c->dtype);
    }
  }
}

}  // namespace stepcast::executor

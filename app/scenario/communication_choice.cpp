#include "app/scenario/communication_choice.hpp"

#include <string>

namespace stepcast::app {

collective::Forced forced_choices(const scenario::Communication& communication) {
  using scenario::CollectiveAlgorithm;
  using scenario::CollectiveProtocol;
  collective::Forced forced;
  switch (communication.algorithm) {
    case CollectiveAlgorithm::kAuto: break;
    case CollectiveAlgorithm::kRing: forced.algorithm = collective::Algorithm::kRing; break;
    case CollectiveAlgorithm::kTree: forced.algorithm = collective::Algorithm::kTree; break;
    case CollectiveAlgorithm::kNvls: forced.algorithm = collective::Algorithm::kNvls; break;
    case CollectiveAlgorithm::kNvlsTree: forced.algorithm = collective::Algorithm::kNvlsTree; break;
    case CollectiveAlgorithm::kCollNet: forced.algorithm = collective::Algorithm::kCollNet; break;
    case CollectiveAlgorithm::kPat: forced.algorithm = collective::Algorithm::kPat; break;
    case CollectiveAlgorithm::kPairwise: forced.algorithm = collective::Algorithm::kPairwise; break;
    case CollectiveAlgorithm::kPxn: forced.algorithm = collective::Algorithm::kPxn; break;
    case CollectiveAlgorithm::kHierarchical: forced.algorithm = collective::Algorithm::kHierarchical; break;
  }
  switch (communication.protocol) {
    case CollectiveProtocol::kAuto: break;
    case CollectiveProtocol::kLl: forced.protocol = collective::Protocol::kLl; break;
    case CollectiveProtocol::kLl128: forced.protocol = collective::Protocol::kLl128; break;
    case CollectiveProtocol::kSimple: forced.protocol = collective::Protocol::kSimple; break;
  }
  if (communication.nccl) forced.nccl = std::stoi(communication.nccl->substr(2));  // "2.12"
  return forced;
}

collective::Parameters with_choices(collective::Parameters parameters, const scenario::Communication& communication) {
  if (communication.channels) parameters.channels = *communication.channels;
  if (communication.algorithm == scenario::CollectiveAlgorithm::kCollNet) parameters.collnet = true;
  return parameters;
}

}  // namespace stepcast::app

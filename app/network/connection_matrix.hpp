// app/network/connection_matrix.hpp — which recorded flows wait for which: the connection matrix that a recording was made from.
//
// Form     a line each, words apart by blanks, # starts a comment line; numbers are whole
//            Nodes N | Connections N | Triggers N                                    (counts, checked)
//            SRC->DST id ID start T size BYTES [send_done_trigger K]                 starts at T
//            SRC->DST id ID trigger K size BYTES [send_done_trigger K]               starts when K goes off
//            trigger id K oneshot
//          send_done_trigger K: when all of the flow is acknowledged at its sender, K goes off.
// Source   the matrices in ../shared/packet_truth/cm
#pragma once

#include <string>

#include "app/network/recorded_flows.hpp"

namespace stepcast::app {

// Lets every triggered flow of the case follow the flow that sets off its trigger, instead of starting when it was
// recorded to. Throws UserError: a line that is none, flows that are not those of the recording, a trigger that no
// flow or more than one sets off, flows that wait for each other in a circle.
void follow_matrix(RecordedCase& recorded, const std::string& file);

}  // namespace stepcast::app

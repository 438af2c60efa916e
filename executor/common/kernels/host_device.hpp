// executor/common/kernels/host_device.hpp — kernel bodies are functions over an index, for the host and for CUDA devices alike: the CPU
// backend loops over the index, the CUDA backend gives each thread one, and tests on the CPU see the arithmetic of both.
#pragma once

#ifdef __CUDACC__
#define STEPCAST_HOST_DEVICE __host__ __device__
#else
#define STEPCAST_HOST_DEVICE
#endif

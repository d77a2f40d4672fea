"""The few kernels in C++, their C interface, and which of them this machine can run."""

"""The GPUs of a rank: which they are, how they do, and what befalls them. Asked of NVIDIA's driver (NVML).

The driver may hang in the kernel, where nothing can end a call, or crash in its library. So only a process of its own
(`probe`) ever speaks to it; the launcher starts it, reads its lines (`sampler`), and can always leave without it.
"""

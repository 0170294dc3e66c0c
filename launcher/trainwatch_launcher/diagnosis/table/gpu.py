"""Failures of GPUs and of what drives them.

After c10/cuda/CUDAException.cpp and CUDACachingAllocator.cpp, cuda.h, the driver's messages (nverror.h), and the texts
of JAX, TensorFlow, Paddle, MindSpore, vLLM and SGLang.
"""
from __future__ import annotations

from trainwatch_launcher.diagnosis.table.pattern import CAUSE, FACT, Kind

HARDWARE = Kind(
    "gpu_hardware", "gpu", FACT,
    "Take the node out of the job, have it drained and its GPU reset or replaced, and restart from the last "
    "checkpoint.",
    says=[
        "fallen off the bus",
        ("uncorrectable|uncorrected",
         r"uncorrect(?:able|ed) (?:\w+ )?(?:ecc|nvlink|error (?:found|detected) (?:on|in) gpu)"),
        "CUDA_ERROR_ECC_UNCORRECTABLE",
        "cudaErrorECCUncorrectable",
        "CUDA_ERROR_NVLINK_UNCORRECTABLE",
        ("double bit|double-bit ecc", r"double[- ]bit ecc"),
        ("gpu is lost", r"gpu is lost\. {1,4}reboot|: gpu is lost$"),
        ("device handle for gpu", r"unable to determine the device handle for gpu.{0,80}(?:unknown error|lost|not "
                                  r"found)"),
        ("hbm|bit ecc", r"hbm (?:multi[- ]bit )?ecc|multi[- ]bit ecc"),
        ("hw exception by gpu", ""),
        ("nvlink", r"nvlink.{0,40}(?:fatal|uncorrectable|down|inactive)"),
        ("amdgpu", r"amdgpu.{0,80}(?:uncorrectable|gpu reset begin)"),
        ("over nvlink or a hardware error", ""),
        ("nvlink error was detected", ""),
        ("sxid", r"nvswitch.{0,60}sxid.{0,60}fatal"),
    ],
)  # fmt: skip

OOM = Kind(
    "cuda_oom", "gpu", CAUSE,
    "Lower the micro-batch or sequence length, or use activation checkpointing, sharding or offloading; look also "
    "whether another process still holds memory on that GPU.",
    says=[
        "CUDA out of memory",
        "CUDA error: out of memory",
        ("out of memory", r"\b(?:hip|xpu|npu|mps backend|cuda driver error:|cuda failure(?: \d+)?) ?'?out of memory"),
        "CUDA_ERROR_OUT_OF_MEMORY",
        "cudaErrorMemoryAllocation",
        ("outofmemoryerror", r"(?:torch(?:\.cuda)?|torch_npu\S{0,40}|numba\S{0,40})\.OutOfMemoryError"),
        ("resource_exhausted", r"resource_exhausted: (?:out of memory|.{0,60}(?:allocat|hbm|oom))"),
        ("ran out of memory in memory space", ""),
        "OOM when allocating tensor",
        "Out of memory error on GPU",
        ("failed to allocate|out of memory allocating",
         r"out of memory allocating|failed to allocate (?:request for )?.{0,40}on (?:device|gpu)"),
        "CUBLAS_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_ALLOC_FAILED",
        ("cudamalloc", r"cudaMalloc(?:Async)?.{0,60}out of memory"),
        ("No available memory for the cache blocks", "", "Raise gpu_memory_utilization, or shard the model over more "
                                                         "GPUs."),
        ("free memory on device", r"free memory on device.{0,80}is less than desired gpu memory utilization",
         "Another process holds the GPU's memory: end it, or lower gpu_memory_utilization."),
        ("kv cache", r"larger than the (?:available kv cache memory|maximum number of tokens that can be stored in "
                     r"kv cache)",
         "Lower max_model_len, or raise gpu_memory_utilization."),
        "Not enough memory. Please try to increase --mem-fraction-static",
        ("memory not enough|) memory isn't enough", r"memory not enough|device\(id:\d+\) memory isn't enough"),
        ("cuda buffer of size", r"cuda buffer of size \d+"),
        "cutlass cannot allocate workspace",
    ],
    raises=[("ResourceExhaustedError", r"^\S{0,80}ResourceExhaustedError")],
)  # fmt: skip

FAULT = Kind(
    "cuda_fault", "gpu", CAUSE,
    "Run it once with CUDA_LAUNCH_BLOCKING=1 to get the line that is really at fault; an assertion is mostly an index "
    "out of range (labels, token ids, positions).",
    says=[
        ("illegal memory access|illegal address", r"illegal memory access (?:was encountered)?|illegal address"),
        "device-side assert triggered",
        ("assertion", r"(?:block: \[\d{1,9},\d{1,9},\d{1,9}\], )?thread: \[\d{1,9},\d{1,9},\d{1,9}\] assertion"),
        ("unspecified launch failure", ""),
        ("misaligned address", ""),
        ("illegal instruction was encountered", ""),
        ("invalid program counter", ""),
        ("the launch timed out", r"the launch timed out and was terminated"),
        ("cuda_error_", r"cuda_error_(?:illegal|launch|assert|misaligned|invalid_pc|hardware_stack)\w*"),
        ("cudaerror", r"cudaError(?:Illegal|Launch|Assert|Misaligned|InvalidPc|HardwareStack)\w*"),
        ("cuda_exception_", r"cuda_exception_\d+"),
        ("status_", r"(?:cublas|cudnn|cusolver|cusparse)_status_(?:execution_failed|internal_error|invalid_value"
                    r"|mapping_error)"),
        "Memory access fault by GPU",
        ("aicore|ai core", r"aicore (?:exception|execution|error)|ai core (?:error|exception)"),
        ("hip error", r"hip error: (?:an illegal|unspecified|invalid device function)"),
        ("too many resources requested for launch", ""),
    ],
    raises=[("cufft_", r"cufft_(?:internal_error|exec_failed)"),
            ("cuda error|error", r"cuda (?:runtime |kernel )?error(?::| \(\d+\))"), ("hip error", r"hip error:"),
            ("triton error", r"triton error \[cuda\]")],
)  # fmt: skip

SETUP = Kind(
    "cuda_setup", "gpu", CAUSE,
    "Compare driver, CUDA and framework on this node (nvidia-smi, python -m torch.utils.collect_env) with a node that "
    "works.",
    says=[
        ("no kernel image is available", "", "This build of the framework or extension has no code for this GPU: "
                                             "install "
         "one that is built for its compute capability."),
        ("driver version is insufficient", "", "Update the driver, or install a build for the CUDA version that the "
         "driver supports."),
        ("driver on your system is too old", "", "Update the driver, or install a build for the CUDA version that the "
         "driver supports."),
        ("Found no NVIDIA driver", "", "The container sees no driver: start it with GPUs (--gpus all, nvidia "
                                       "runtime, a "
         "GPU request)."),
        ("driver/library version mismatch", "", "The driver was updated under a running system: reload its kernel "
                                                "modules "
         "or restart the node."),
        ("no CUDA-capable device is detected", "", "The process sees no GPU: look at CUDA_VISIBLE_DEVICES and at "
                                                   "what the "
         "job was given."),
        ("no cuda gpus are available", "", "The process sees no GPU: look at CUDA_VISIBLE_DEVICES and at what the "
                                           "job was "
         "given."),
        ("invalid device ordinal", "", "More processes than visible GPUs: compare --nproc-per-node with "
         "CUDA_VISIBLE_DEVICES."),
        ("torch not compiled with cuda", "", "A CPU-only build is installed: install the CUDA build."),
        ("all cuda-capable devices are busy", "", "The GPU is in exclusive mode or stuck: end the other process, or "
                                                  "reset "
         "the GPU."),
        ("system not yet initialized", "", "Start the fabric manager (nvidia-fabricmanager) in the driver's version."),
        ("unsupported display driver", ""),
        ("forward compatibility was attempted", "", "The container's cuda-compat libraries do not fit this GPU: take "
                                                    "them "
         "out of LD_LIBRARY_PATH, or update the driver."),
        ("cannot re-initialize cuda in forked", "", "Start worker processes with the spawn method, or touch CUDA only "
         "after the fork."),
        ("ptx was compiled", r"ptx was compiled with an unsupported toolchain|the provided ptx was compiled"),
        ("not_initialized", r"(?:cublas|cudnn|cusolver|cusparse)_status_not_initialized",
         "Mostly no GPU memory is left for the library's handle, or driver and library do not fit."),
        ("arch_mismatch|cublas_status_not_supported|cudnn_status_not_supported",
         r"(?:cublas|cudnn)_status_(?:arch_mismatch|not_supported)"),
        ("version", r"cudnn_status_(?:sub)?library_version_mismatch|cudnn version incompatibility"),
        "Failed to initialize NVML",
        "NVIDIA-SMI has failed",
        ("nvidia-container-cli", r"nvidia-container-cli: .{0,60}error"),
        ("could not select device driver", ""),
        ("failed call to cuinit", ""),
        ("unable to initialize backend", r"unable to initialize backend '(?:cuda|gpu|tpu|rocm)'"),
        ("dnn library|dnn initialization failed", r"(?:dnn|dnn library) (?:library )?initialization failed"),
        ("libcuda.so", r"libcuda\.so(?:\.1)?: cannot open"),
        ("only supports ampere", r"flash ?attention only supports ampere"),
        ("compute capability of at least", r"only supported on gpus with compute capability of at least"),
        ("no hip gpus are available", ""),
        ("cuda_error_", r"cuda_error_(?:no_device|not_initialized|system_\w+|compat_not_supported\w*|no_binary_for_gpu"
         r"|unsupported_ptx\w*|invalid_device|unknown)"),
    ],
    raises=[
        ("cudagetdevicecount", r"unexpected error from cudagetdevicecount"),
        ("cuda", r"cuda (?:error: )?initialization error|cuda unknown error"),
        ("no platforms that are instances of", r"no platforms that are instances of (?:gpu|cuda|rocm|tpu)",
         "JAX found no plugin for this device: install jax[cuda12] (or [tpu]) and look at what the job was given."),
        ("is_available() is false", r"torch\.cuda\.is_available\(\) is false",
         "The process sees no GPU: look at CUDA_VISIBLE_DEVICES and at what the job was given."),
    ],
    prints=[("nvidia-smi", r"nvidia-smi: (?:command )?not found")],
)  # fmt: skip

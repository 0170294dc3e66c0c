"""Failures of the machine around the process: memory, shared memory, deaths by signal.

After mm/oom_kill.c, mm/memcontrol.c, Slurm's task_cgroup_memory.c and step_io, the kubelet, Ray's memory monitor,
torch/utils/data/_utils/signal_handling.py, glibc's malloc.c and CPython's faulthandler.c.
"""
from __future__ import annotations

from trainwatch_launcher.diagnosis.table.pattern import CAUSE, FACT, WEAK, Kind

SENT = r"(?:received|got|caught|by|with|on|signals\.|signal:?) ?(?:signal )?\(?{0}|{0}\)? (?:received|caught|at|in)"
"""How a death by signal is said, and how it is not: a list of names is none."""

MEMORY = Kind(
    "host_oom", "host", FACT,
    "Give the job more memory, or use less: fewer data workers, smaller prefetch and caches, memory-mapped data, no "
    "full "
    "copy of the weights in each process.",
    says=[
        ("oom", r"detected \d+ oom[-_]kill event"),
        ("out-of-memory handler", ""),
        ("oom", r"\boom[- ]?killed\b"),
        ("out of memory|some of the step tasks have been oom",
         r"(?:memory cgroup )?out of memory: kill(?:ed)? process|some of the step tasks have been "
                          r"oom"),
        ("out of memory", r"srun: error: .{0,80}out of memory"),
        ("oomkill", r"\boomkill(?:ed|ing)\b"),
        "System OOM encountered",
        ("memory limit|term_memlimit",
         r"exceeded (?:job |step |its )?(?:virtual )?memory limit|memory limit .{0,40}exceeded"
                         r"|term_memlimit"),
        ("mem ", r"job killed: (?:v?mem|pmem) \S{1,20} exceeded limit"),
        ("low on resource: memory", ""),
        ("low on memory|due to memory pressure (oom)", r"node running low on memory|due to memory pressure \(oom\)"),
        ("cpuallocator", r"cpuallocator: (?:can't allocate|not enough) memory"),
        ("killed by the oom killer", ""),
        ("failed with result 'oom-kill'", ""),
        ("due to memory pressure for", r"killed .{1,300} due to memory pressure for"),
        ("can't allocate memory|not enough memory: you tried to allocate",
         r"can't allocate memory: you tried to allocate|not enough memory: you tried to "
                                  r"allocate"),
        ("unable to allocate", r"unable to allocate \S{1,20} ?[kmgtp]?i?b? for an array"),
        ("cannot allocate memory|[errno 12]", r"cannot allocate memory|\[errno 12\]"),
        "std::bad_alloc",
        "java.lang.OutOfMemoryError",
    ],
    raises=[("MemoryError", r"^(?:\w{1,60}\.){0,6}_?(?:array)?memoryerror"),
            ("outofmemoryerror", r"^ray\.exceptions\.outofmemoryerror")],
    softly=[("oom-kill:", r"oom-kill:constraint"), "invoked oom-killer"],
)  # fmt: skip

SHM = Kind(
    "shm_full", "host", CAUSE,
    "Give the container a larger /dev/shm (--shm-size, --ipc=host, a memory emptyDir), or use fewer data workers.",
    says=[
        ("insufficient shared memory", r"insufficient shared memory"),
        ("out of shared memory|raise your shared memory limit", r"out of shared memory|raise your shared memory limit"),
        ("bus error encountered in worker", ""),
        ("shared memory object", r"unable to open shared memory object"),
        ("/torch_", r"unable to (?:write to|resize|mmap|allocate).{0,80}</torch_"),
        ("posix_fallocate failed", r"posix_fallocate failed ?: ?no space"),
        ("shared memory segment", r"(?:creating|attaching to|create) shared memory segment"),
        ("/dev/shm", r"/dev/shm.{0,120}no space left|no space left.{0,120}/dev/shm|cannot allocate.{0,60}/dev/shm"),
        ("bus error", r"dataloader worker \(pid \d{1,9}\) is killed by signal: bus error"),
        ("shm|no space left on device",
         r"no space left on device.{0,60}(?:/shm|shm_open|psm_)|shm_open.{0,60}(?:failed|no space)"),
    ],
)  # fmt: skip

KILLED = Kind(
    "killed", "host", WEAK,
    "Somebody or something outside ended it: look at the memory graph and the kernel's log (dmesg) of that host, at "
    "the "
    "scheduler and at the platform's events.",
    says=[
        ("sigkill|signal",
         r"signal 9 \(sigkill\) received|signals\.sigkill|\(?signal:? ?9 ?\(?killed|exited on signal 9\b"),
        ("signal 9|signal: 9", r"(?:exited on|killed by|terminated by|received) signal:? 9\b"),
        ("killed by signal: 9", ""),
        ("got signal: 15", ""),
        ("killed by signal: killed", r"(?<!worker )(?<!\) is )killed by signal: killed"),
    ],
    raises=["WorkerCrashedError", ("termination signal", r"termination signal[`)]{1,2} is detected by the operating")],
    prints=[
        ("sigterm", r"\bsigterm received|\bsigterm\b.{0,40}(?:exiting|shutting down|terminating)"),
        ("killed", r"^killed$|: line \d{1,6}: +\d{1,9} killed\b|^\S{0,40}: killed(?: \(signal 9\))?$|^\[\d+\]\+? "
                   r"+killed\b"),
        ("killed", r"srun: error: \S{1,80}: tasks? [\d,\-]{1,200}: killed"),
        ("sigterm", r"(?:got|received|caught|process \d+ got) (?:signal )?(?:signals\.)?sigterm"),
        ("death signal", r"received (?:signals\.sigterm|15) death signal"),
        ("signal 15|signal: 15", r"(?:received|got|caught) signal:? 15\b|caught signal 15"),
    ],
    softly=[("terminated", r"^terminated$|: line \d{1,6}: +\d{1,9} terminated\b")],
)  # fmt: skip

CRASH = Kind(
    "native_crash", "host", CAUSE,
    "A compiled library crashed: set PYTHONFAULTHANDLER=1 for the Python line, keep the core (ulimit -c unlimited), "
    "and "
    "check that the versions of extensions and framework fit.",
    says=[
        ("fatal python error", r"fatal python error: (?:segmentation fault|aborted|bus error|illegal instruction"
                               r"|floating"
         r"|pygilstate|gc|none_dealloc|_enter|deallocating)"),
        ("segfault encountered", ""),
        ("terminate called", r"terminate called (?:after throwing an instance of|without an active exception"
                             r"|recursively)"),
        ("libc++abi", r"libc\+\+abi: terminating"),
        ("stack smashing", ""),
        ("attempt to free invalid pointer", ""),
        ("check failed: ", r"^check failed: "),
        ("double free or corruption", ""),
        ("corrupt|munmap_chunk():|realloc():|malloc():|free():",
         r"corrupted (?:size vs|double-linked|unsorted)|(?:malloc|realloc|free|munmap_chunk)\(\): \w+ \w+"),
        ("free(): invalid|invalid", r"(?:free|munmap_chunk|realloc)\(\): invalid"),
        ("signal: ", r"\bsignal: (?:segmentation fault|aborted|bus error|illegal instruction|floating point) "
                     r"?\w{0,12} \(\d{1,2}\)"),
        ("caught signal 11|caught signal", r"caught signal (?:11|6|7|4|8)\b"),
        ("segfault at", r"\w\[\d{1,9}\]: segfault at"),
        ("signal 11|signal: 11", r"\bsignal:? 11\b"),
        ("sigsegv", SENT.format("sigsegv")),
        ("signal 6|signal: 6", r"\bsignal:? 6\b"),
        ("sigabrt", SENT.format("sigabrt")),
        ("sigbus", SENT.format("sigbus")),
        ("sigill", SENT.format("sigill")),
        ("sigfpe", SENT.format("sigfpe")),
        ("is detected by the operating system",
         r"(?:fault|instruction|abort signal|undefined portion .{1,40}|arithmetic operation)[`)]{1,2} is detected "
         r"by the operating system"),
    ],
    prints=[
        ("segmentation fault", r"^segmentation fault|: line \d{1,6}: +\d{1,9} segmentation fault|: segmentation fault"
         r"|signal: segmentation fault"),
        ("core dumped", r"\(core dumped\)"),
        ("bus error", r"^bus error|: line \d{1,6}: +\d{1,9} bus error"),
        ("illegal instruction", r"^illegal instruction|: line \d{1,6}: +\d{1,9} illegal instruction"),
        ("aborted", r": line \d{1,6}: +\d{1,9} aborted\b|: tasks? [\d,\-]{1,200}: aborted"),
        ("floating point exception", r"^floating point exception|: line \d{1,6}: +\d{1,9} floating point exception"),
    ],
    softly=[("aborted", r"^aborted$")],
)  # fmt: skip

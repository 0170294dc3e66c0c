"""What Xids mean: the numbers by which NVIDIA's driver says that something went wrong on a GPU.

Own words, after NVIDIA's catalog (docs.nvidia.com/deploy/xid-errors, "Analyzing Xid Errors with the Xid Catalog"); the
names of the numbers are also in the open kernel modules' nverror.h.
"""
from __future__ import annotations

APPLICATION, GPU, DRIVER, LINK, NOTICE = "application", "gpu", "driver", "link", "notice"
"""Where to look first: at the program, the GPU and its memory, the driver, a link between GPUs; or it only informs."""

MEANINGS = {
    8: (GPU, "the GPU stopped processing"),
    11: (APPLICATION, "invalid or corrupted commands were sent to the GPU"),
    13: (APPLICATION, "exception in a kernel, mostly an access out of bounds or an illegal instruction"),
    31: (APPLICATION, "page fault on the GPU: an illegal address, mostly a bug of the program"),
    32: (LINK, "corrupted command stream, mostly the quality of the PCIe link"),
    37: (DRIVER, "error in the driver's firmware"),
    38: (DRIVER, "timeout in the driver's firmware"),
    39: (GPU, "exception in a copy engine"),
    43: (APPLICATION, "a software fault ended the program on the GPU; the GPU is healthy"),
    44: (GPU, "fault during a context switch"),
    45: (NOTICE, "a program on the GPU was torn down: it ended, was killed, or follows an earlier error"),
    46: (GPU, "the GPU stopped processing; it must be reset"),
    48: (GPU, "uncorrectable (double-bit) ECC error; the GPU must be reset"),
    54: (GPU, "auxiliary power is not connected"),
    61: (GPU, "breakpoint in the GPU's microcontroller"),
    62: (GPU, "the GPU's microcontroller halted; it must be reset"),
    63: (NOTICE, "a bad row or page of memory is being replaced"),
    64: (GPU, "a bad row or page of memory could not be replaced; the GPU must be reset"),
    66: (DRIVER, "illegal access by the driver"),
    67: (DRIVER, "illegal access by the driver"),
    68: (GPU, "exception in the video decoder"),
    69: (APPLICATION, "class error in a kernel or in the commands sent"),
    74: (LINK, "NVLink error: this link, or the GPU or switch at its other end"),
    78: (DRIVER, "a virtual GPU could not be started"),
    79: (GPU, "the GPU has fallen off the bus: the node must be restarted"),
    80: (LINK, "corrupted data was sent to the GPU"),
    92: (GPU, "high rate of corrected (single-bit) ECC errors"),
    93: (NOTICE, "the InfoROM's wear limit was reached"),
    94: (GPU, "memory error, contained: the program that met it must be restarted"),
    95: (GPU, "memory error, not contained: all programs are hit and the GPU must be reset"),
    109: (GPU, "timeout of a context switch; the GPU must be reset"),
    110: (GPU, "security fault; mostly a hardware failure"),
    119: (DRIVER, "the GPU's system processor (GSP) does not answer; the GPU must be reset"),
    120: (DRIVER, "error in the GPU's system processor (GSP); the GPU must be reset"),
    121: (LINK, "corrected errors on the link to the CPU"),
    136: (LINK, "training of a link failed; the GPU must be reset"),
    137: (APPLICATION, "illegal access to another GPU's memory over NVLink"),
    140: (GPU, "uncorrectable memory error that could not be dealt with; the GPU must be reset"),
    141: (DRIVER, "error in CUDA's fast path"),
    143: (GPU, "the GPU could not be initialized; it must be reset"),
    151: (GPU, "key rotation failed"),
    154: (NOTICE, "what the GPU needs to recover has changed (see the Xid before it)"),
    155: (LINK, "an NVLink went down"),
    156: (GPU, "a defective part of the GPU was retired; it must be reset"),
    157: (GPU, "a defective part of the GPU could not be retired"),
    158: (GPU, "fatal timeout; the GPU must be reset"),
    160: (GPU, "a memory channel was retired"),
    161: (GPU, "a memory channel could not be retired"),
    167: (LINK, "fatal timeout on PCIe"),
    168: (GPU, "errors in protected memory reduce what is usable"),
    169: (GPU, "an internal microcontroller halted"),
    171: (GPU, "uncorrectable error in the GPU's DRAM"),
    172: (GPU, "uncorrectable error in the GPU's SRAM"),
}
MEANINGS.update((number, MEANINGS[39]) for number in (40, 41, 70, 71, 72, 75, 76, 77, 85))
MEANINGS.update((number, (LINK, "NVLink error")) for number in range(144, 151))


def meaning(number: int) -> str:
    """What an Xid says, in a few words; a sentence that says so for one that is not in the table."""
    return MEANINGS[number][1] if number in MEANINGS else "not in our table; see NVIDIA's Xid catalog"


def cause(number: int) -> str:
    """Where to look first: `application`, `gpu`, `driver`, `link`, or `notice`; empty when unknown."""
    return MEANINGS[number][0] if number in MEANINGS else ""

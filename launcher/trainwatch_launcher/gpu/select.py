"""Which GPUs belong to a rank, from what the environment says. Pure: devices and variables in, a choice out.

CUDA_VISIBLE_DEVICES is read as the CUDA Programming Guide says ("CUDA Environment Variables") and as CUDA does:
entries from left to right, and the first that names no device ends the list.
"""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, Sequence

RUNTIME_SAYS_NOTHING = ("", "all", "void", "none")
"""Values of NVIDIA_VISIBLE_DEVICES that name no device; `void` also where a container got its GPUs another way."""
LOCAL_SIZES = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE",
               "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE")
ANOTHER_ORDER = (
    "the GPUs are of several kinds and CUDA_DEVICE_ORDER is not PCI_BUS_ID: CUDA may count them in another order")


class Mig:
    """A MIG instance of a GPU: its UUID, GPU instance and compute instance."""

    def __init__(self, uuid: str, gi: int, ci: int) -> None:
        self.uuid, self.gi, self.ci = uuid, gi, ci


class Device:
    """A GPU that NVML shows, `index` in NVML's order. `migs` is None when it is not in MIG mode."""

    def __init__(self, index: int, uuid: str, name: str = "", migs: Sequence[Mig] | None = None) -> None:
        self.index, self.uuid, self.name, self.migs = index, uuid, name, migs


class Choice:
    """The GPUs of a rank, in the order in which its command counts them: (NVML index, place in `migs` or None)."""

    def __init__(self, picks: Sequence[tuple[int, int | None]], note: str = "") -> None:
        self.picks, self.note = list(picks), note


class LocalRank:
    """A launcher's rank among those of its node.

    `alone` says that it surely stands for one process of a node (torchrun's child, a nested launcher) and not for a
    container.
    """

    def __init__(self, number: int, alone: bool) -> None:
        self.number, self.alone = number, alone


def choose(devices: Sequence[Device], environ: Mapping[str, str], local: LocalRank | None = None) -> Choice:
    """The GPUs of a rank: what CUDA_VISIBLE_DEVICES names, else what the container got, and of these its own one when
    it is one of several local ranks.
    """
    said = environ.get("CUDA_VISIBLE_DEVICES")
    if said is not None:
        choice, by_number = named_to_cuda(devices, said)
    else:
        choice, by_number = given_by_runtime(devices, environ.get("NVIDIA_VISIBLE_DEVICES", "")), False
    if local is not None:
        choice, by_local_rank = own_one(choice, local, environ)
        by_number = by_number or by_local_rank
    kinds = {device.name for device in devices}
    if by_number and len(kinds) > 1 and environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
        choice.note = choice.note or ANOTHER_ORDER
    return choice


def named_to_cuda(devices: Sequence[Device], text: str) -> tuple[Choice, bool]:
    """(The devices that CUDA_VISIBLE_DEVICES names, whether it counts them)."""
    words = [word.strip() for word in text.split(",")]
    if words[0] in ("", "NoDevFiles"):
        return Choice([], "CUDA_VISIBLE_DEVICES hides all GPUs"), False
    by_number = not words[0].startswith(("GPU-", "MIG-"))
    picks: list[tuple[int, int | None]] = []
    ended = ""
    for word in words:
        found = by_count(devices, word) if by_number else by_uuid(devices, word)
        if found is None:
            ended = word
            break
        if found in picks:
            return Choice([], "CUDA_VISIBLE_DEVICES names a GPU twice: CUDA shows none"), by_number
        picks.append(found)
    note = ""
    if ended and not (by_number and ended.startswith("-")):
        note = "CUDA_VISIBLE_DEVICES: %r names no GPU here, and ends the list" % ended[:60]
    elif not picks:
        note = "CUDA_VISIBLE_DEVICES hides all GPUs"
    return Choice(picks, note), by_number


def by_count(devices: Sequence[Device], word: str) -> tuple[int, int | None] | None:
    """The device of a number, which CUDA reads as strtol(3) does: `1a` is 1."""
    digits = word[:1] if word[:1] in ("+", "-") else ""
    for character in word[len(digits):]:
        if not (character.isascii() and character.isdigit()):
            break
        digits += character
    try:
        number = int(digits)
    except ValueError:
        return None
    return of_device(devices[number]) if 0 <= number < len(devices) else None


def by_uuid(devices: Sequence[Device], word: str) -> tuple[int, int | None] | None:
    """The device or MIG instance whose UUID begins like this, as long as there is only one."""
    if word.startswith("MIG-GPU-") and word.count("/") == 2:
        uuid, gi, ci = word[len("MIG-"):].split("/")
        named = [(device.index, place) for device in devices if device.uuid == uuid
                 for place, mig in enumerate(device.migs or ()) if (str(mig.gi), str(mig.ci)) == (gi, ci)]
    elif word.startswith("MIG-"):
        named = [(device.index, place) for device in devices
                 for place, mig in enumerate(device.migs or ()) if mig.uuid.lower().startswith(word.lower())]
    elif word.startswith("GPU-"):
        like = [device for device in devices if device.uuid.lower().startswith(word.lower())]
        return of_device(like[0]) if len(like) == 1 else None
    else:
        return None
    return named[0] if len(named) == 1 else None


def of_device(device: Device) -> tuple[int, int | None]:
    """A whole GPU; of one in MIG mode its first instance, the only one that CUDA uses unless another is named."""
    return device.index, 0 if device.migs else None


def given_by_runtime(devices: Sequence[Device], text: str) -> Choice:
    """All devices that NVML shows: inside a container they are those that it was given.

    Only a privileged container shows all of the host's, and NVIDIA_VISIBLE_DEVICES then says which were meant.
    """
    everything = Choice([pick for device in devices for pick in all_of(device)])
    words = [word.strip() for word in text.split(",") if word.strip()]
    if text.strip() in RUNTIME_SAYS_NOTHING or not words or len(words) >= len(everything.picks):
        return everything
    picks = [by_uuid(devices, word) if word.startswith(("GPU-", "MIG-")) else by_count(devices, word) for word in words]
    known = [pick for pick in picks if pick is not None]
    if len(known) < len(picks):
        return everything
    return Choice(known, "NVIDIA_VISIBLE_DEVICES names %d of the %d GPUs that can be seen here" % (
        len(known), len(everything.picks)))


def all_of(device: Device) -> list[tuple[int, int | None]]:
    """A whole GPU, or every instance of one in MIG mode."""
    return [(device.index, place) for place in range(len(device.migs))] if device.migs else [(device.index, None)]


def own_one(choice: Choice, local: LocalRank, environ: Mapping[str, str]) -> tuple[Choice, bool]:
    """(One device when the launcher stands for one of several local ranks, whether that was so)."""
    count = len(choice.picks)
    size = local_size(environ)
    several = local.alone or (size is not None and size > 1 and size == count)
    if not several or count < 2:
        return choice, False
    if local.number < count:
        return Choice([choice.picks[local.number]], choice.note), True
    note = "local rank %d of %d visible GPUs: all of them are shown" % (local.number, count)
    return Choice(choice.picks, choice.note or note), False


def local_size(environ: Mapping[str, str]) -> int | None:
    """How many ranks the engine runs on this node; None when it does not say, or not the same for each node."""
    for name in LOCAL_SIZES:
        text = environ.get(name, "").partition("(")[0]
        if text.isascii() and text.isdigit():
            return int(text)
    return None

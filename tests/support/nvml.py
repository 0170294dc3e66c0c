"""A stub of NVIDIA's libnvidia-ml.so.1 that tests steer by a text file; see nvml_stub.c for what may stand in it."""
from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

SOURCE = Path(__file__).with_name("nvml_stub.c")
LIBRARY = "libnvidia-ml.so.1"


def build(directory: Path, missing: Sequence[str] = ()) -> None:
    """Compile the stub into a directory, without the functions in `missing`."""
    absent = [f"-D{function}=absent_{function}" for function in missing]
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-pthread", f"-Wl,-soname,{LIBRARY}", *absent,
                    "-o", str(directory / LIBRARY), str(SOURCE)], check=True, timeout=60)


class Stub:
    """A built stub and what it answers. `steer` changes that, also while a process uses it."""

    def __init__(self, directory: Path, library: Path | None = None, missing: Sequence[str] = ()) -> None:
        self.library = library or directory
        self.file = directory / "nvml"
        if library is None or missing:
            self.library = directory
            build(directory, missing)
        self.steer()

    def steer(self, *lines: str) -> None:
        """Replace all that was said before; nothing said: eight healthy GPUs."""
        new = self.file.with_suffix(".new")
        new.write_text("".join(line + "\n" for line in lines))
        new.replace(self.file)

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """What a process needs to find the stub instead of a driver."""
        return {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(self.library), "NVML_STUB": str(self.file),
                **(more or {})}

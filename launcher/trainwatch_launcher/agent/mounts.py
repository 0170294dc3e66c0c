"""Which file system holds a path, and whether our kernel learns of what others write there."""
from __future__ import annotations

# A change that another host makes on these is told to nobody here.
REMOTE = frozenset(
    ("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "9p", "afs", "glusterfs", "wekafs")
)
ESCAPES = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))


def file_system(path: str, mounts: str = "/proc/self/mounts") -> str:
    """The type of the file system that holds `path`, such as `ext4`; empty where nobody says. Touches no file of it."""
    best, kind = "", ""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return ""
    for line in lines:
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = fields[1]
        for written, meant in ESCAPES:
            point = point.replace(written, meant)
        point = point.rstrip("/")
        if len(point) >= len(best) and (path == point or path.startswith(point + "/")):
            best, kind = point, fields[2]
    return kind


def is_remote(kind: str) -> bool:
    """Whether other hosts may write to a file system of this type without our kernel noticing."""
    return kind in REMOTE or kind.startswith("fuse.")

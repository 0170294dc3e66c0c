#!/usr/bin/env bash
# Installs the Debian packages that the tests drive, those that are missing, and says nothing when all are there.
# Usage: system-packages.sh [PYTHON]     the Python that will make the virtual environment
set -euo pipefail
export PATH="$PATH:/usr/sbin:/sbin"
python=${1:-python3}

# package : how to see that it is there
needed=(
    "tmux : command -v tmux"
    "gcc : command -v gcc"
    "libc6-dev : test -e /usr/include/stdio.h"
    "procps : command -v ps"
    "util-linux : command -v unshare"
    "iproute2 : command -v ip"
    "openssh-server : command -v sshd"
    "openssh-client : command -v ssh"
    "sshfs : command -v sshfs"
    "fuse3 : command -v fusermount3"
    "slurm-wlm : command -v slurmctld && command -v slurmd && command -v srun"
    "munge : command -v munged"
    "docker.io : command -v dockerd"
    "chromium : command -v chromium"
    "zsh : command -v zsh"
    "fish : command -v fish"
    "python3-venv : $python -c 'import ensurepip'"
)

missing=()
for entry in "${needed[@]}"; do
    package=${entry%% : *}
    check=${entry#* : }
    bash -c "$check" >/dev/null 2>&1 || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

install="apt-get install -y --no-install-recommends ${missing[*]}"
if ! command -v apt-get >/dev/null; then
    echo "the tests need these programs, by the names of their Debian packages: ${missing[*]}" >&2
    exit 2
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2>/dev/null; then
        echo "the tests need system packages that are not here. As root: $install" >&2
        exit 2
    fi
    as_root=(sudo env DEBIAN_FRONTEND=noninteractive)
fi

echo "installing system packages: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" $install; } >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    echo "could not install system packages. As root: $install" >&2
    exit 2
fi

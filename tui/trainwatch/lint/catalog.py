"""What well-known programs do to a training job: the lists from which `commands` judges."""
from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """How much a command's failure matters. Of several commands the highest counts."""

    TRIVIAL = 0
    """Says something, or tests something."""
    QUERY = 1
    """Looks at something; a failure leaves nothing undone."""
    SIDE = 2
    """Tidies up: `mkdir`, `rm`, `kill`."""
    CONTROL = 3
    """The shell's own: `set`, `cd`, `export`."""
    PLAIN = 4
    """Changes something: `cp`, `make`, `systemctl`, a program that is not known."""
    SETUP = 5
    """Installs or downloads."""
    WORK = 6
    """A step of the job: a program of its own, a script."""
    TRAIN = 7
    """A step that trains."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TRIVIAL = _words("""
    echo printf true : hostname date pwd basename dirname whoami id nproc uname test [ [[ (( let expr seq sleep tty tput
    logname arch yes clear banner figlet usleep
""")
"""Commands that cannot sensibly fail."""
QUERY = _words("""
    nvidia-smi nvidia-debugdump ls cat grep egrep fgrep zgrep rg ag head tail sort uniq cut tr wc awk gawk mawk nawk sed
    find df du free ps pgrep pidof env printenv which whereis type hash lscpu lspci lsmod lsblk lsof ip ifconfig netstat
    ss ping nslookup dig host ibstat ibstatus ibv_devinfo sinfo squeue scontrol sacct sstat getent stat file readlink
    realpath diff cmp comm md5sum sha1sum sha256sum numfmt jq yq column paste tee nl tac rev xxd od strings top htop
    vmstat iostat uptime ulimit nvcc rocm-smi amd-smi hipcc locale getconf dpkg-query less more history jobs fold
    numastat getopt curl nvtop gpustat tree cksum b2sum bc dc fmt pv ts false return_code cal dmesg journalctl
    envsubst m4 xargs command mktemp zcat bzcat xzcat zstdcat lz4cat gzcat
""")
FILTERS = _words("""
    tee sed awk gawk mawk nawk cat grep egrep fgrep rg tail head sort uniq tr cut less more pv column ts nl tac rev fold
    fmt logger wc paste xxd od strings jq yq comm expand unexpand iconv stdbuf read mapfile readarray ansi2txt gawk perl
    rotatelogs multilog cronolog systemd-cat
""")
"""What a pipe's right end is when it only passes on or shows what the left end does."""
SIDE = _words("""
    mkdir rm rmdir touch chmod chown chgrp ln unlink kill pkill killall logger notify-send sync renice sysctl modprobe
    mkfifo umount stty wandb tensorboard mail sendmail mutt nvidia-persistenced nvidia-cuda-mps-control ipcrm fuser
    setfacl truncate disown beep xset reset umask scancel nvidia-modprobe dcgmi
""")
CONTROL = _words("""
    exit return break continue set shopt cd pushd popd export unset local declare typeset readonly shift eval exec trap
    wait read getopts alias unalias builtin bind complete compgen caller enable help fg bg suspend mapfile readarray
    ulimit . source
""")
PLAIN = _words("""
    cp mv install tar gzip gunzip bzip2 bunzip2 xz unxz zstd zip unzip 7z cpio ar make cmake gcc g++ cc ld ninja bazel
    systemctl service mount dd patch git docker podman ssh scp sftp rsync git-lfs crontab at useradd adduser groupadd
    usermod passwd su sudo chroot update-alternatives update-rc.d invoke-rc.d dpkg dpkg-divert dpkg-maintscript-helper
    dpkg-reconfigure deb-systemd-helper deb-systemd-invoke ldconfig update-initramfs depmod start-stop-daemon iptables
    nft openssl gpg ssh-keygen ssh-keyscan ssh-add ssh-agent perl ruby node npm go cargo rustc java javac mvn gradle
    psql mysql sqlite3 redis-cli kubectl helm terraform sbatch salloc qsub bsub module ml conda mamba micromamba
    activate deactivate lake spack nvidia-ctk ionice split csplit shred tic infocmp locale-gen xauth xdg-open dbus-send
    gsettings msgfmt msgmerge autoconf automake aclocal libtool pkg-config mkfs fsck losetup parted udevadm
    loginctl hostnamectl timedatectl localectl busctl machinectl
""")
"""Well-known programs that change something. A program that no list has is one of the job's own steps in a job."""

TRAINERS = _words("""
    torchrun accelerate deepspeed horovodrun colossalai composer llamafactory-cli xtuner axolotl tune swift litgpt
    lightning torchtitan bmtrain ds nemo fairseq-train fairseq-hydra-train t5x maxtext modelopt unsloth-cli megatron
    paddle_launch paddle msrun tinker
""")
LAUNCHERS = _words("srun mpirun mpiexec mpiexec.hydra aprun jsrun prun ibrun flux horovodrun pdsh clush")
"""They start other commands on nodes."""
CONTAINERS = _words("docker podman nerdctl singularity apptainer enroot kubectl chroot nsenter udocker sarus shifter")
"""They start other commands somewhere else: a command is looked for among their words."""
SHELLS = _words("bash sh dash ksh zsh ash rbash")
POSIX_SHELLS = _words("sh dash ash")
PYTHONS = ("python", "pypy", "ipython")
"""Beginnings of the names of interpreters."""
TRAINING_PARTS = ("train", "finetune", "fine_tune", "rlhf", "grpo", "distill")
"""Parts of a script's name that say that it trains."""
TRAINING_TOKENS = _words("sft dpo ppo tune")
"""Whole words of such a name."""
TRAINING_WORDS = _words("main run launch fit rl worker")
"""Whole words that say so only in a job."""
TRAINING_OPTIONS = _words("""
    epochs num_epochs max_epochs num_train_epochs lr learning_rate batch_size train_batch_size micro_batch_size gpus
    n_gpus num_gpus nproc_per_node world_size deepspeed fsdp max_steps train_iters global_batch_size
    per_device_train_batch_size
""")
"""Options that only a training has."""

ASIDE_PARTS = ("notify", "slack", "feishu", "dingtalk", "webhook", "cleanup", "clean_up", "monitor", "heartbeat",
               "healthcheck", "health_check", "send_mail", "alert")  # fmt: skip
"""Parts of the names of scripts whose failure the job can bear."""

WRAPPERS = {
    # name: (options that take a value, how many words come before the command)
    "nohup": ("", 0), "setsid": ("", 0), "time": ("-f -o", 0), "nice": ("-n", 0), "ionice": ("-c -n -p", 0),
    "env": ("-u -C -S --unset --chdir", 0), "stdbuf": ("-i -o -e", 0), "unbuffer": ("", 0), "chronic": ("", 0),
    "timeout": ("-k -s --kill-after --signal", 1), "taskset": ("", 1), "chrt": ("", 1), "command": ("", 0),
    "numactl": ("-N -m -C -i -l -p --cpunodebind --membind --physcpubind --interleave --preferred", 0),
    "builtin": ("", 0), "exec": ("-a", 0), "sudo": ("-u -g -h -C -p -D -R", 0), "doas": ("-u", 0),
    "trainwatch-launch": ("--run-dir --root --run-id --rank --world-size --local-rank --hold --hold-on --no-hold-on "
                          "--drain-timeout --grace --kill-after --rewrite --spool-max --heartbeat", 0),
    "tini": ("-p -e", 0), "dumb-init": ("--rewrite -r", 0), "catatonit": ("", 0), "gosu": ("", 1), "su-exec": ("", 1),
    "strace": ("-o -e -p -s -E -u", 0), "ltrace": ("-o -e -s", 0), "flock": ("-w -E", 1), "xvfb-run": ("-s -n -e", 0),
    "catchsegv": ("", 0), "caffeinate": ("", 0), "setarch": ("", 1), "linux64": ("", 0), "prlimit": ("", 0),
    "cgexec": ("-g", 0), "systemd-run": ("-p -u --unit", 0), "proxychains": ("", 0), "proxychains4": ("", 0),
    "ncu": ("-o -k -s -c", 0), "exec_with_retry": ("", 0), "retry": ("", 0), "watch": ("-n", 0), "xargs": ("", 0),
}  # fmt: skip
"""Programs that run another command and give its status on."""
RUNNERS = {
    # name: words that have to follow, and then options and the command
    "conda": ("run",), "mamba": ("run",), "micromamba": ("run",), "uv": ("run",), "poetry": ("run",),
    "pipenv": ("run",), "pdm": ("run",), "hatch": ("run",), "rye": ("run",), "pixi": ("run",), "nsys": ("profile",),
    "rocprof": (), "singularity": ("exec", "run"), "apptainer": ("exec", "run"),
}  # fmt: skip
ENVIRONMENT = frozenset(("module", "ml", "conda", "mamba", "micromamba"))
"""They change the shell they run in."""
KNOWN_VARIABLES = _words("""
    HOME PATH PWD OLDPWD USER LOGNAME SHELL HOSTNAME HOSTTYPE MACHTYPE OSTYPE UID EUID PPID IFS RANDOM SRANDOM SECONDS
    LINENO BASH BASHPID BASHOPTS SHELLOPTS FUNCNAME PIPESTATUS DIRSTACK GROUPS OPTARG OPTIND OPTERR REPLY EPOCHSECONDS
    EPOCHREALTIME SHLVL TERM LANG COLUMNS LINES PS4 COPROC MAPFILE
""")
"""Variables that a shell sets, or that every login has."""
LISTS = _words("""
    PATH PYTHONPATH LD_LIBRARY_PATH LIBRARY_PATH CPATH CPLUS_INCLUDE_PATH C_INCLUDE_PATH MANPATH PKG_CONFIG_PATH
    LD_PRELOAD CMAKE_PREFIX_PATH XDG_DATA_DIRS CLASSPATH INFOPATH
""")
"""Variables that scripts append to, whether they are set or not."""
JOB_VARIABLES = ("CUDA_VISIBLE_DEVICES", "NCCL_", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "NPROC_PER_NODE", "GLOO_")
"""Beginnings of variables that only a training job sets or reads."""

"""Which command a line really runs, behind `srun`, `nohup` and the like, and how much its failure matters."""
from __future__ import annotations

from dataclasses import dataclass

from trainwatch.lint import catalog
from trainwatch.lint.catalog import Kind
from trainwatch.lint.syntax import Simple, Word

SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib/", "/etc/")
"""Programs below these belong to the machine, not to the job."""


@dataclass(slots=True)
class Call:
    """A command behind its wrappers: its name (without directories), its words from the name on."""

    name: str
    words: list[Word]
    wrappers: list[str]
    path: str
    """The name as written, `` when it is only known when it runs."""

    @property
    def texts(self) -> list[str]:
        """The arguments' literal text, `` where nothing is known."""
        return [word.known for word in self.words[1:]]

    @property
    def plain(self) -> list[str]:
        """The arguments that are no options."""
        return [text for text in self.texts if not text.startswith("-")]


def resolve(command: Simple) -> Call:
    """The command that a simple command runs in the end."""
    words, wrappers = command.words, list[str]()
    for _ in range(8):
        call = _call(words, wrappers)
        rest = _wrapped(call)
        if not rest:
            return call
        words = rest
        wrappers = [*wrappers, call.name]
    return call


def _call(words: list[Word], wrappers: list[str]) -> Call:
    path = ((words[0].text or "").lstrip("\\") if words else "") or ""
    return Call(path.rpartition("/")[2] or path, words, wrappers, path)


def _wrapped(call: Call) -> list[Word]:
    """The words of the command that a wrapper runs; none when the call is no wrapper."""
    name, rest = call.name, call.words[1:]
    if name in catalog.WRAPPERS:
        with_value, count = catalog.WRAPPERS[name]
        if name == "command" and rest[:1] and (rest[0].text or "")[:2] in ("-v", "-V"):
            return []
        return _after_options(rest, frozenset(with_value.split()), count, name == "env")
    if name in catalog.RUNNERS:
        wanted = catalog.RUNNERS[name]
        if wanted and (not rest or rest[0].text not in wanted):
            return []
        return _command_among(rest[bool(wanted) :])
    if name in catalog.LAUNCHERS or name in ("chroot", "nsenter"):
        return _command_among(rest)
    if name in catalog.CONTAINERS:
        verb = next((at for at, word in enumerate(rest[:6]) if word.text in ("run", "exec", "start")), len(rest))
        return _command_among(rest[verb + 1 :])
    return []


def _after_options(words: list[Word], with_value: frozenset[str], count: int, assigns: bool) -> list[Word]:
    at = 0
    while at < len(words):
        text = words[at].known
        if text == "--":
            return words[at + 1 :]
        if text.startswith("-") and len(text) > 1:
            at += 2 if text in with_value else 1
        elif assigns and "=" in text:
            at += 1
        elif count:
            count -= 1
            at += 1
        else:
            return words[at:]
    return []


def _command_among(words: list[Word]) -> list[Word]:
    """The first word that is a program's name, with what follows; after `--` whatever stands there."""
    for at, word in enumerate(words[:60]):
        text = word.text or ""
        if text == "--" and at + 1 < len(words):
            return words[at + 1 :]
        if text.startswith("-") or not text:
            continue
        name = text.rpartition("/")[2]
        known = is_python(name) or name in catalog.SHELLS or name in catalog.TRAINERS or name in catalog.WRAPPERS
        if known or name in ("hostname", "nvidia-smi", "true", "trainwatch-launch", "rm", "cp", "mkdir") or (
            "/" in text and name.endswith((".sh", ".py", ".bash")) and not _is_value(words, at)
        ):
            return words[at:]
    return []


def _is_value(words: list[Word], at: int) -> bool:
    """Whether a path may belong to the option before it."""
    before = words[at - 1].known if at else ""
    return before.startswith("-") and "=" not in before


def _is_aside(script: str) -> bool:
    """Whether a script's name says that the job does not depend on it: `notify_slack.py`."""
    low = script.rpartition("/")[2].lower()
    return any(word in low for word in catalog.ASIDE_PARTS)


def is_python(name: str) -> bool:
    """Whether a program is a Python interpreter: `python3.11`."""
    return any(name.startswith(start) and not name[len(start) :].strip("0123456789.") for start in catalog.PYTHONS)


def trains(name: str, job: bool, texts: list[str] | None = None) -> bool:
    """Whether a script's name says that it trains, or, with a name like main.py, its arguments."""
    low = "/".join(name.lower().split("/")[-2:])
    if any(part in low for part in catalog.TRAINING_PARTS):
        return True
    low = low.rpartition("/")[2]
    tokens = "".join(letter if letter.isalnum() else " " for letter in low).split()
    if any(token in catalog.TRAINING_TOKENS for token in tokens):
        return True
    if any(text.lstrip("-").partition("=")[0].replace("-", "_") in catalog.TRAINING_OPTIONS for text in texts or ()):
        return True
    return job and any(token in catalog.TRAINING_WORDS for token in tokens)


def kind_of(call: Call, job: bool) -> Kind:
    """How much the failure of a call matters. `job`: in a training job an unknown program is a step of it."""
    name, texts = call.name, call.texts
    launched = any(wrapper in catalog.LAUNCHERS for wrapper in call.wrappers)
    if not call.words:
        return Kind.TRIVIAL
    if not name:
        return Kind.WORK if job else Kind.QUERY
    if name in catalog.TRAINERS:
        return Kind.TRAIN if name != "accelerate" or "launch" in texts else Kind.QUERY
    if is_python(name):
        return _python(call, launched, job)
    if is_setup(call):
        return Kind.SETUP
    if name in catalog.SHELLS:
        script = next((text for text in call.plain if text), "")
        if not texts:
            return Kind.WORK if call.wrappers or any(call.words[1:]) else Kind.QUERY
        if "-c" in texts or not script:
            return Kind.WORK
        if _is_aside(script):
            return Kind.SIDE
        return Kind.TRAIN if launched or trains(script, job) else Kind.WORK
    for names, kind in ((catalog.TRIVIAL, Kind.TRIVIAL), (catalog.QUERY, Kind.QUERY), (catalog.SIDE, Kind.SIDE),
                        (catalog.CONTROL, Kind.CONTROL)):  # fmt: skip
        if name in names:
            return kind
    return _other(call, job, launched)


def _other(call: Call, job: bool, launched: bool) -> Kind:
    name, texts = call.name, call.texts
    if name in ("git", "pip", "pip3", "conda", "docker", "kubectl", "npm", "apt", "apt-get", "dpkg") and texts[:1] and (
        texts[0] in ("status", "log", "rev-parse", "describe", "diff", "show", "branch", "config", "remote", "list",
                     "freeze", "check", "info", "ps", "images", "inspect", "get", "version", "--version", "ls-files")
    ):  # fmt: skip
        return Kind.QUERY
    if texts[:1] and texts[0] in ("--version", "-V", "--help") and len(texts) == 1:
        return Kind.QUERY
    if name in catalog.LAUNCHERS:
        return Kind.TRAIN if job or not texts else Kind.WORK
    if name == "ssh":
        remote = _command_among(call.words[1:])
        return Kind.WORK if job or (remote and kind_of(_call(remote, []), job) >= Kind.WORK) else Kind.PLAIN
    if name in catalog.PLAIN:
        return Kind.PLAIN
    if "/" in call.path or name.endswith((".sh", ".py", ".bash")):
        if call.path.startswith(SYSTEM) and not name.endswith((".sh", ".py")):
            return Kind.PLAIN
        if _is_aside(name):
            return Kind.SIDE
        own = name.endswith((".sh", ".py", ".bash")) or call.path.startswith(("./", "../"))
        if not own and not job:
            return Kind.PLAIN
        return Kind.TRAIN if trains(name, job) else Kind.WORK
    if job:
        return Kind.TRAIN if launched or "train" in texts[:1] or "train" in name else Kind.WORK
    return Kind.PLAIN


def _python(call: Call, launched: bool, job: bool) -> Kind:
    """A program in Python: a training, a step, a question."""
    texts = call.texts
    at = 0
    while at < len(texts) and texts[at].startswith("-"):
        if texts[at] in ("-c", "-V", "--version", "-"):
            return Kind.WORK if launched and texts[at] == "-c" else Kind.QUERY
        if texts[at] == "-m":
            return _module(call, texts[at + 1] if at + 1 < len(texts) else "", launched, job)
        at += 2 if texts[at] in ("-X", "-W") else 1
    if at == len(texts):
        return Kind.WORK
    script = texts[at]
    if _is_aside(script):
        return Kind.SIDE
    return Kind.TRAIN if launched or trains(script, job, texts[at:]) else Kind.WORK


def _module(call: Call, module: str, launched: bool, job: bool) -> Kind:
    if module in ("pip", "uv", "conda"):
        return Kind.SETUP if is_setup(call) else Kind.QUERY
    if module in ("json.tool", "site", "platform", "torch.utils.collect_env", "sysconfig", "http.server", "timeit"):
        return Kind.QUERY
    if module.startswith(("torch.distributed", "accelerate.commands", "deepspeed", "horovod", "paddle.distributed")):
        return Kind.TRAIN
    return Kind.TRAIN if launched or trains(module.rpartition(".")[2], job, call.texts) else Kind.WORK


INSTALLS = {
    "pip": ("install", "download"), "pip3": ("install", "download"), "pipx": ("install",),
    "uv": ("sync", "add", "pip install", "pip sync", "tool install", "venv"), "poetry": ("install", "add"),
    "pdm": ("install", "sync"),
    "pipenv": ("install", "sync"), "conda": ("install", "create", "env create", "env update", "update"),
    "mamba": ("install", "create", "env create", "env update", "update"),
    "micromamba": ("install", "create", "env create", "update"), "apt": ("install", "update", "upgrade"),
    "apt-get": ("install", "update", "upgrade", "dist-upgrade"), "yum": ("install", "update"),
    "dnf": ("install", "update"), "apk": ("add", "update"), "zypper": ("install", "in"), "brew": ("install",),
    "git": ("clone", "pull", "fetch", "submodule", "lfs pull", "lfs fetch", "lfs clone"), "npm": ("install", "ci"),
    "huggingface-cli": ("download",), "hf": ("download",), "modelscope": ("download",),
    "kaggle": ("datasets download", "competitions download"), "dvc": ("pull", "fetch"), "docker": ("pull", "build"),
    "podman": ("pull", "build"), "singularity": ("pull", "build"), "apptainer": ("pull", "build"),
    "enroot": ("import",), "gcsfuse": (), "gdown": (), "aria2c": (), "axel": (), "easy_install": (), "spack": (
        "install",),
}  # fmt: skip
"""What installs or downloads: the program and the words that follow; none when it always does."""
COPIES = {
    "aws": ("s3", "s3://"), "gsutil": ("cp rsync mv", "gs://"), "gcloud": ("storage", "gs://"),
    "ossutil": ("cp sync", "oss://"), "ossutil64": ("cp sync", "oss://"), "obsutil": ("cp sync", "obs://"),
    "tosutil": ("cp", "tos://"), "coscli": ("cp sync", "cos://"), "s3cmd": ("get sync", "s3://"),
    "s5cmd": ("cp sync", "s3://"), "mc": ("cp mirror", ""), "rclone": ("copy sync copyto", ":"),
    "azcopy": ("copy cp sync", "https://"),
}  # fmt: skip
"""What copies to and from buckets: it downloads when the first place named is one."""
VERBS = frozenset((
    "s3", "s3api", "cp", "sync", "mv", "rsync", "get", "copy", "copyto", "mirror", "storage", "objects", "download",
))  # fmt: skip
UNPACKERS = frozenset(("unzip", "gunzip", "bunzip2", "unxz", "unzstd", "unrar", "uncompress", "7za", "7z"))


def is_setup(call: Call) -> bool:
    """Whether a call installs, downloads or unpacks."""
    name, texts, plain = call.name, call.texts, call.plain
    if is_python(name):
        module = texts.index("-m") + 1 if "-m" in texts else len(texts)
        if module < len(texts) and texts[module] in ("pip", "uv"):
            return any(text in ("install", "download", "sync") for text in texts[module + 1 :])
        return plain[:1] == ["setup.py"] and any(text in ("install", "develop") for text in plain)
    if name in INSTALLS:
        phrases = INSTALLS[name]
        return not phrases or any(_begins(plain, phrase.split()) or phrase in plain[:2] for phrase in phrases)
    if name == "wget":
        return "--spider" not in texts and "--version" not in texts
    if name == "curl":
        return _curl_saves(call)
    if name in COPIES:
        verbs, place = COPIES[name]
        places = [text for text in plain if text not in VERBS]
        return any(verb in plain for verb in verbs.split()) and bool(places) and place in places[0]
    if name in ("scp", "rsync"):
        places = [text for text in plain if text]
        return len(places) > 1 and ":" in places[0].partition("/")[0]
    if name == "tar":
        first = texts[0] if texts else ""
        return "--extract" in texts or ("x" in first and not first.startswith("--"))
    if name in UNPACKERS:
        return not any(text in ("-l", "-v", "-t", "-Z", "-p", "-c", "-dc", "-cd", "l") for text in texts[:2])
    return False


def _curl_saves(call: Call) -> bool:
    """curl with its answer kept as a file: not a question to a server."""
    texts = call.texts
    for at, text in enumerate(texts):
        short = text.startswith("-") and not text.startswith("--")
        if text in ("--output", "--remote-name", "--remote-name-all", "--output-dir") or (
            short and text[1:].isalpha() and ("O" in text or text.endswith("o"))
        ):
            target = texts[at + 1] if at + 1 < len(texts) else ""
            return target != "/dev/null"
    return False


def _begins(texts: list[str], phrase: list[str]) -> bool:
    """Whether the words of a phrase are the first ones."""
    return texts[: len(phrase)] == phrase

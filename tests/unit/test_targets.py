"""What a TARGET says: every form, and one clear line for what is none."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwatch import config, targets
from trainwatch.config import Options
from trainwatch.targets import Directory, Docker, Host, Kubernetes, Slurm, Ssh, parse
from trainwatch_launcher.reader.runs import TargetError


@pytest.mark.parametrize(("written", "meant"), [
    ("/shared/run", Directory("/shared/run")),
    ("runs", Directory("runs")),
    ("./ssh:odd", Directory("./ssh:odd")),
    ("C:/windows", Directory("C:/windows")),
    ("ssh://gpu-01/data/run", Ssh((Host("gpu-01"),), "/data/run")),
    ("ssh://me@gpu-01:2222/data/run", Ssh((Host("gpu-01", "me", 2222),), "/data/run")),
    ("ssh://gpu-01", Ssh((Host("gpu-01"),), "")),
    ("ssh://gpu-01/", Ssh((Host("gpu-01"),), "")),
    ("ssh://gpu-01/~/runs/x", Ssh((Host("gpu-01"),), "~/runs/x")),
    ("ssh://gpu-01/a b/c:d@e", Ssh((Host("gpu-01"),), "/a b/c:d@e")),
    ("ssh://w-[0-2]/r", Ssh((Host("w-0"), Host("w-1"), Host("w-2")), "/r")),
    ("ssh://me@w-[0,8]:22/r", Ssh((Host("w-0", "me", 22), Host("w-8", "me", 22)), "/r")),
    ("ssh://a[01-02],login/r", Ssh((Host("a01"), Host("a02"), Host("login")), "/r")),
    ("ssh://w-[0-4/2]/r", Ssh((Host("w-0"), Host("w-2"), Host("w-4")), "/r")),
    ("ssh://[fe80::1]:22/r", Ssh((Host("fe80::1", None, 22),), "/r")),
    ("ssh://[::1]/r", Ssh((Host("::1"),), "/r")),
    ("slurm:4711", Slurm("4711")),
    ("slurm:4711_3/data/run", Slurm("4711_3", "/data/run")),
    ("docker:w0", Docker(("w0",))),
    ("docker:w0,w1,w0/data", Docker(("w0", "w1"), "/data")),
    ("k8s:job-name=train", Kubernetes(labels="job-name=train")),
    ("k8s:ml/job=a,role in (worker, master)", None),
    ("k8s:ml/job=a,tier!=web", Kubernetes("ml", labels="job=a,tier!=web")),
    ("k8s:app.kubernetes.io/name=x", Kubernetes(labels="app.kubernetes.io/name=x")),
    ("k8s:ml/app.kubernetes.io/name=x:/data", Kubernetes("ml", labels="app.kubernetes.io/name=x", path="/data")),
    ("k8s:pod/w-0", Kubernetes(pod="w-0")),
    ("k8s:ml/pod/w-0:/data/run", Kubernetes("ml", pod="w-0", path="/data/run")),
])  # fmt: skip
def test_every_form_of_a_target(written, meant):
    if meant is None:
        with pytest.raises(TargetError, match="no labels"):
            parse(written)
    else:
        assert parse(written).target == meant
        assert parse(written).name == written


@pytest.mark.parametrize(("written", "said"), [
    ("ssh:gpu-01:/data", "write ssh://HOST/PATH"),
    ("ssh:///data", "no host"),
    ("ssh://-oProxyCommand=x/data", "no name of a host"),
    ("ssh://a;b/data", "no name of a host"),
    ("ssh://-l@gpu/data", "no user's name"),
    ("ssh://@gpu/data", "no user's name"),
    ("ssh://gpu:0/data", "no port"),
    ("ssh://gpu:x/data", "no port"),
    ("ssh://w-[0-/data", "ssh://|w-"),
    ("ssh://w-[0-999999999]/data", "more than 100000 hosts"),
    ("ssh://w-[0-9999]x[0-9999]/data", "more than 100000 hosts"),
    ("ssh://@all/data", "no user's name"),
    ("slurm:", "no job id"),
    ("slurm:--all", "no job id"),
    ("docker:", "no name of a container"),
    ("docker:-it", "no name of a container"),
    ("docker:a b", "no name of a container"),
    ("k8s:", "no labels"),
    ("k8s:--all-namespaces", "no labels"),
    ("k8s:ml/-l", "no labels"),
    ("k8s:pod/", "no name of a pod"),
    ("k8s:-n/pod/x", "no namespace"),
])  # fmt: skip
def test_what_is_no_target_is_one_clear_line(written, said):
    with pytest.raises(TargetError, match=said) as caught:
        parse(written)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=30), st.sampled_from(["", "ssh://", "slurm:", "docker:", "k8s:"]))
def test_any_text_is_a_target_or_one_error(text, scheme):
    try:
        meant = parse(scheme + text).target
    except TargetError:
        return
    if isinstance(meant, Ssh):
        assert all(not host.name.startswith("-") for host in meant.hosts)


def test_hosts_come_from_a_file(tmp_path):
    file = tmp_path / "hosts"
    file.write_text("# ours\nworker-[0-1] slots=8\n\nme@login:2222   # the last\nworker-1\n")
    assert parse("/data/run", hosts_file=str(file)).target == Ssh(
        (Host("worker-0"), Host("worker-1"), Host("login", "me", 2222)), "/data/run")
    for text, said in (("# nothing\n", "no host"), ("-x\n", "no name")):
        file.write_text(text)
        with pytest.raises(TargetError, match=said):
            parse("/data/run", hosts_file=str(file))
    file.write_text("h\n")
    with pytest.raises(TargetError, match="relative"):
        parse("data/run", hosts_file=str(file))
    with pytest.raises(TargetError, match="No such file"):
        parse("/data", hosts_file=str(tmp_path / "none"))


CONFIG = """
[options]
handshakes = 8

[targets]
prod = "ssh://w-[0-1]/data/run"

[targets.lab]
target = "docker:w0"
python = "python3.11"
ssh_config = "~/lab"
"""


def test_names_stand_for_targets_with_their_options(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    file = tmp_path / "config.toml"
    file.write_text(CONFIG)
    loaded = config.load(file)
    assert parse("prod", loaded) == targets.Named(
        "prod", Ssh((Host("w-0"), Host("w-1")), "/data/run"), Options(handshakes=8))
    assert parse("lab", loaded) == targets.Named(
        "lab", Docker(("w0",)), Options(handshakes=8, python="python3.11", ssh_config="/home/me/lab"))
    assert parse("/x", loaded).options == Options(handshakes=8)
    assert config.load(tmp_path / "none") == config.Config()
    file.write_text("gpu_price = 2")
    assert config.load(file).gpu_price == 2.0


@pytest.mark.parametrize(("text", "said"), [
    ("x = 1", "the file has no x; it may have gpu_price, options, shell, targets, lint"),
    ("gpu_price = -1", "gpu_price must be a number from 0 up"),
    ("gpu_price = true", "gpu_price must be a number from 0 up"),
    ("[options]\nhandshake = 8", "options has no handshake"),
    ("[options]\nhandshakes = '8'", "options.handshakes must be a number above 0"),
    ("[options]\nhandshakes = 0", "must be a number above 0"),
    ("[options]\nhandshakes = true", "must be a number above 0"),
    ("[shell]\nkeep_hold = 1", "shell.keep_hold must be true or false"),
    ("[shell]\nkeep = true", "shell has no keep"),
    ("[targets]\nprod = 3", "targets.prod must be a table"),
    ("[targets.prod]\npython = 'x'", "targets.prod needs a target"),
    ("targets = 3", "targets must be a table"),
    ("= 3", "config.toml: "),
])  # fmt: skip
def test_a_configuration_that_is_wrong_says_where(tmp_path, text, said):
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(TargetError, match=said):
        config.load(file)


def test_remote_targets_are_told_from_paths():
    assert all(map(targets.is_remote, ("ssh://x", "slurm:1", "docker:x", "k8s:a=b")))
    assert not any(map(targets.is_remote, ("/x", "ssh", "runs/ssh:x", "demo", "")))

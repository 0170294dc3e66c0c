"""A stand-in kubectl that insists on the real one's command line; no cluster is asked."""
from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from builders import RunBuilder
from support.following import following
from trainwatch import opening
from trainwatch.opening import open_source
from trainwatch.sources.base import SourceError
from trainwatch.targets import parse
from trainwatch_launcher.reader.changes import AttemptKey

# As kubectl 1.30: options anywhere before `--`, and behind it the command.
KUBECTL = """#!{python}
import argparse, json, os, sys
home = {home!r}
open(home + "/calls", "a").write(json.dumps(sys.argv[1:]) + "\\n")
words = sys.argv[1:]
command = words[words.index("--") + 1:] if "--" in words else []
words = words[:words.index("--")] if "--" in words else words
parser = argparse.ArgumentParser(prog="kubectl")
verbs = parser.add_subparsers(dest="verb", required=True)
get = verbs.add_parser("get")
get.add_argument("kind", choices=["pods"])
get.add_argument("name", nargs="?")
get.add_argument("-l", "--selector")
run = verbs.add_parser("exec")
run.add_argument("name")
run.add_argument("-c", "--container")
run.add_argument("-i", "--stdin", action="store_true")
run.add_argument("-t", "--tty", action="store_true")
for each in (get, run):
    each.add_argument("-n", "--namespace", default="default")
get.add_argument("-o", "--output", choices=["json"])
asked = parser.parse_args(words)
pods = [pod for pod in json.load(open(home + "/pods")) if pod["metadata"]["namespace"] == asked.namespace]
named = [pod for pod in pods if pod["metadata"]["name"] == asked.name]
if asked.verb == "get":
    if asked.name is not None:
        if not named:
            sys.exit('Error from server (NotFound): pods "%s" not found' % asked.name)
        print(json.dumps(named[0]))
    else:
        wanted = dict(pair.split("=") for pair in asked.selector.split(","))
        found = [pod for pod in pods if wanted.items() <= pod["metadata"]["labels"].items()]
        print(json.dumps({{"items": found}}))
else:
    if not named or not command:
        sys.exit("error: you must specify at least one command for the container")
    if asked.container not in [c["name"] for c in named[0]["spec"]["containers"]]:
        sys.exit("Error from server (BadRequest): container %s is not valid for pod %s" % (asked.container, asked.name))
    os.environ["HOSTNAME"] = asked.name
    os.execvp(command[0], command)
"""


def pod(name, namespace="default", phase="Running", annotations=None, containers=("train", "sidecar")):
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"job": "7b", "app.kubernetes.io/name": "x"},
                     **({"annotations": annotations} if annotations else {})},
        "spec": {"containers": [{"name": container} for container in containers]},
        "status": {"phase": phase},
    }  # fmt: skip


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """`cluster(pods)` is a kubectl that knows these."""
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text(KUBECTL.format(python=sys.executable, home=str(tmp_path)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    def know(*pods):
        (tmp_path / "pods").write_text(json.dumps(pods))
        return lambda: [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]

    return know


async def test_pods_with_some_labels_are_one_run(tmp_path, cluster):
    run = RunBuilder(tmp_path / "run")
    run.rank(0, host=os.uname().nodename).start(cwd=str(tmp_path)).fail(1)
    calls = cluster(pod("w-0", "ml"), pod("w-1", "ml"), pod("done", "ml", phase="Succeeded"), pod("other"))
    source = await open_source(parse(f"k8s:ml/job=7b:{run.directory}"))
    async with following(source) as follower:
        await follower.until(lambda f: all(link.up for link in f.source.links))
        assert [link.name for link in source.links] == ["w-0", "w-1"]
        plan = await source.shell(AttemptKey(0), ("pwd",))
        assert plan.argv[:3] == ("kubectl", "exec", "-it")
        done = subprocess.run(plan.argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.stdout == f"{tmp_path}\n"
    execs = [call for call in calls() if call[0] == "exec"]
    assert {call[call.index("--container") + 1] for call in execs} == {"train"}


async def test_a_pod_by_name_and_the_container_that_it_names_or_the_user(tmp_path, cluster):
    run = RunBuilder(tmp_path / "run")
    annotations = {"kubectl.kubernetes.io/default-container": "sidecar"}
    calls = cluster(pod("w-0", annotations=annotations))
    async with following(await open_source(parse(f"k8s:pod/w-0:{run.directory}"))) as follower:
        await follower.until(lambda f: f.source.links[0].up)
    assert calls()[-1][calls()[-1].index("--container") + 1] == "sidecar"


async def test_a_pod_that_is_made_later_joins_the_run(tmp_path, cluster, monkeypatch):
    monkeypatch.setattr(opening, "PODS_AGAIN", 0.2)
    run = RunBuilder(tmp_path / "run")
    run.rank(0).start()
    cluster(pod("w-0"))
    async with following(await open_source(parse(f"k8s:job=7b:{run.directory}"))) as follower:
        await follower.until(lambda f: f.source.links[0].up)
        cluster(pod("w-0"), pod("w-1", phase="Pending"))
        cluster(pod("w-0"), pod("w-1"))
        await follower.until(lambda f: [link.name for link in f.source.links if link.up] == ["w-0", "w-1"])
        cluster()  # no pod at all is no reason to forget those that there were
        run.rank(1).start()
        await follower.until(lambda f: f.status(AttemptKey(1)))
        assert len(follower.source.links) == 2


@pytest.mark.parametrize(("target", "said"), [
    ("k8s:pod/nobody", 'pods "nobody" not found'),
    ("k8s:job=9b", "no running pod has the labels job=9b"),
    ("k8s:ml/app.kubernetes.io/name=x", "no running pod has .*; there are pods that are pending"),
])  # fmt: skip
async def test_pods_that_are_not_there_are_one_error(cluster, target, said):
    cluster(pod("w-0"), pod("w-9", "ml", phase="Pending"))
    with pytest.raises(SourceError, match=said):
        await open_source(parse(target))


async def test_without_kubectl_that_is_said(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(SourceError, match="cannot run kubectl: it is not installed here"):
        await open_source(parse("k8s:pod/x"))

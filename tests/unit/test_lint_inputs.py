"""Start commands are found in what they stand in: scripts that call others, Slurm, Dockerfiles, manifests."""
from __future__ import annotations

import pytest

from support.linting import lint, pairs
from trainwatch.lint.inputs import Unreadable

STRICT = "#!/bin/bash\nset -euo pipefail\n"
LAX = "#!/bin/bash\npython a.py\npython b.py\n"


@pytest.fixture
def project(tmp_path):
    """Write files, and lint the first one."""

    def write(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(exist_ok=True)
            path = path.with_suffix(".sh")
            path.write_text(text)
        first = tmp_path / f"{next(iter(files))}.sh"
        return lint(first.read_text(), "main.sh", str(first), str(tmp_path))

    return write


def where(report):
    return {(one.file, one.rule, one.line) for one in report.findings if one.severity != "style"}


@pytest.mark.parametrize(
    "call",
    ["bash child.sh", "sh ./child.sh", "./child.sh", "srun bash child.sh", 'bash "$(dirname "$0")/child.sh"',
     'exec bash child.sh', 'HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)\nbash "$HERE/child.sh"',
     'F=child.sh\nbash $F', "bash < child.sh", "f() {\n  bash child.sh\n}\nf"],
)  # fmt: skip
def test_a_child_without_strict_mode_is_found_however_it_is_called(project, call):
    report = project(main=STRICT + call + "\n", child=LAX)
    line = 2 + next(n for n, text in enumerate(call.split("\n"), 1) if ("child.sh" in text and "F=" not in text)
                    or "$F" in text)  # fmt: skip
    assert where(report) == {("main.sh", "strict-not-inherited", line)}
    assert any("child.sh:2" in one.message for one in report.findings)
    assert not report.not_followed


@pytest.mark.parametrize(
    ("call", "child"),
    [("bash child.sh", STRICT + "python a.py\npython b.py\n"), ("bash -e child.sh", LAX), ("bash -eu child.sh", LAX),
     ("./child.sh", "#!/bin/bash -e\npython a.py\npython b.py\n"), ("bash child.sh", "#!/bin/bash\npython a.py\n"),
     ("source child.sh", LAX), (". ./child.sh", LAX), ("export SHELLOPTS\nbash child.sh", LAX)],
)  # fmt: skip
def test_a_child_that_is_strict_or_inherits_it_is_not(project, call, child):
    assert where(project(main=STRICT + call + "\n", child=child)) == set()


def test_an_option_of_the_first_line_is_not_there_when_bash_is_given_the_file(project):
    report = project(main=STRICT + "bash child.sh\n", child="#!/bin/bash -e\npython a.py\npython b.py\n")
    assert where(report) == {("main.sh", "strict-not-inherited", 3)}


def test_a_sourced_file_sets_strict_mode_functions_and_variables(project):
    common = 'set -euo pipefail\nOUT=/data/out\ndie() { echo "$*"; exit 1; }\n'
    script = '#!/bin/bash\nsource common.sh\ntorchrun train.py | tee log || die no\nrm -rf "$OUT"/*\n'
    assert where(project(main=script, common=common)) == set()


def test_findings_in_a_called_script_stand_in_that_script(project):
    child = STRICT + "torchrun train.py || true\n"
    assert where(project(main=STRICT + "bash lib/child.sh\n", lib__child=child)) == {("lib/child.sh", "or-true", 3)}


def test_downloads_of_a_child_run_on_the_job_s_time(project):
    report = project(main=STRICT + "bash get.sh\ntorchrun train.py\n", get="set -e\nwget http://x/y\n")
    assert where(report) == {("get.sh", "setup-on-gpu-time", 2)}


def test_what_cannot_be_found_is_said(project):
    report = project(main=STRICT + 'bash gone.sh\nsource "$CONDA/etc/x.sh"\nbash "$@"\nsource /etc/no/such\n')
    said = [(one.line, one.script, one.why) for one in report.not_followed]
    assert said == [
        (3, "gone.sh", "not found"),
        (4, "$CONDA/etc/x.sh", "its name is only known when it runs"),
        (6, "/etc/no/such", "not found"),
    ]


def test_scripts_that_call_each_other_end(project):
    assert where(project(main="bash other.sh\n", other="source other.sh\nexec bash main.sh\n")) == set()


def test_a_string_for_another_shell_is_looked_into_at_its_own_place():
    script = "set -e\nbash -c 'set -e\n  torchrun \"a b\" train.py || true'\nssh h \"set -e; ./x.sh \\\n || true\"\n"
    report = lint(script)
    found = {(one.rule, one.line, one.column) for one in report.findings if one.rule == "or-true"}
    assert found == {("or-true", 3, 3), ("or-true", 4, 16)}


def test_a_batch_script_that_asks_for_gpus_is_a_job():
    script = "#!/bin/bash\n#SBATCH --gres=gpu:8\nset -eu\npip install x\n./go\n"
    assert pairs(lint(script)) == {("setup-on-gpu-time", 4)}
    assert pairs(lint(script.replace("--gres=gpu:8", "--mem=4G"))) == set()


DOCKERFILE = """\
FROM base AS build
CMD torchrun old.py | tee log
# comment
FROM base
RUN pip install torch && \\
    wget http://x/y
{}
"""


@pytest.mark.parametrize(
    ("command", "finds"),
    [
        ("CMD torchrun train.py 2>&1 | tee log", {("pipe-masks-exit", 7)}),
        ('CMD ["bash", "-c", "torchrun train.py | tee log"]', {("pipe-masks-exit", 7)}),
        ('CMD ["bash", "-o", "pipefail", "-c", "torchrun train.py | tee log"]', set()),
        ('SHELL ["/bin/bash", "-o", "pipefail", "-c"]\nCMD torchrun train.py | tee log', set()),
        ("CMD pip install x; \\\n  # say\n  torchrun train.py || true", {("setup-on-gpu-time", 7), ("or-true", 9)}),
        ('CMD ["torchrun", "train.py"]', set()),
        ("ENTRYPOINT [[ -n $A ]] && torchrun train.py", {("sh-bashism", 7)}),
        ("CMD true || true\nCMD exec torchrun train.py", set()),
        ('ENTRYPOINT ["tini", "--"]\nCMD ["bash", "-c", "torchrun train.py || :"]', {("or-true", 8)}),
    ],
)
def test_what_a_dockerfile_starts(command, finds):
    assert pairs(lint(DOCKERFILE.format(command), "Dockerfile")) == finds


def test_a_script_that_an_image_starts_is_found_beside_its_dockerfile(tmp_path):
    (tmp_path / "start.sh").write_text(STRICT + "python a.py\ntorchrun train.py\n")
    text = 'FROM x\nCOPY start.sh /opt/\nENTRYPOINT ["/opt/start.sh"]\n'
    report = lint(text, "Dockerfile", str(tmp_path / "Dockerfile"))
    assert {(one.file, one.rule, one.line) for one in report.findings} >= {("start.sh", "missing-exec", 4)}
    assert not report.not_followed
    report = lint(text.replace("start.sh", "gone.sh"), "Dockerfile", str(tmp_path / "Dockerfile"))
    assert [(one.line, one.script) for one in report.not_followed] == [(3, "/opt/gone.sh")]


MANIFEST = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: 训练}}
spec:
  pytorchReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
            - name: pytorch
              image: x   # comment
{}
              resources:
                limits: {{nvidia.com/gpu: 8}}
"""


@pytest.mark.parametrize(
    ("command", "finds"),
    [
        ('command: ["bash", "-c", "torchrun train.py | tee log"]', {("pipe-masks-exit", 12, 40)}),
        ("command:\n  - bash\n  - -c\n  - |\n    set -e\n    torchrun train.py \\\n      | tee log",
         {("pipe-masks-exit", 17, 19)}),
        ("command: [bash, -ec]\nargs:\n  - >-\n    pip install x;\n\n    ./go", {("setup-on-gpu-time", 15, 19)}),
        ("command: [bash, -euo, pipefail, -c, 'torchrun train.py | tee log']", set()),
        ("command: [torchrun, train.py]", set()),
        ("args: ['bash', '-c', 'set -e; torchrun train.py || true']", {("or-true", 12, 45)}),
        ("command:\n  - sh\n  - -c\n  # trainwatch: ignore[or-true]\n  - torchrun train.py || true", set()),
    ],
)  # fmt: skip
def test_what_a_container_of_a_manifest_starts(command, finds):
    text = MANIFEST.format("\n".join(" " * 14 + line for line in command.split("\n")))
    report = lint(text, "job.yaml")
    assert {(one.rule, one.line, one.column) for one in report.findings if one.severity != "style"} == finds


def test_a_manifest_on_standard_input_is_known_by_its_content():
    text = MANIFEST.format(" " * 14 + 'command: [sh, -c, "torchrun train.py || true"]')
    assert pairs(lint(text, "-")) == {("or-true", 12)}


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("x.py", "#!/usr/bin/env python3\nimport os\n", "not a shell script"),
        ("x.sh", "\0\1\2", "not a text file"),
        ("x.yaml", "a: [1\nb: }", "not valid YAML in line 2"),
        ("x.yaml", "[" * 5000, "not valid YAML"),
    ],
)
def test_a_file_of_another_kind_is_refused(name, text, why):
    with pytest.raises(Unreadable, match=why):
        lint(text, name)


def test_many_documents_aliases_and_odd_values_are_no_trouble():
    text = "---\n- 1\n---\na: &a {b: *a}\n---\ncontainers: [{image: 1, command: {}, args: [[], {}]}, null]\n---\n"
    assert pairs(lint(text, "x.yml")) == set()

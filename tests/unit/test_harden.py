"""Hardened scripts: what is changed, what is not, and that nothing is left to find."""
from __future__ import annotations

import subprocess

import pytest

from support.linting import DATA, World, cases, lint
from trainwatch.cli import main
from trainwatch.harden.hardening import harden
from trainwatch.lint import follow

NOT_MENDED = {"trap TERM ignore", "sh child", "if then else strict"}
"""Where only a person knows what was meant; these are listed."""
REFERENCE = [(path.stem, path.read_text()) for path in sorted((DATA / "corpus").glob("*.sh"))]
EVERY = [(case.title, case.script) for case in cases()] + REFERENCE


def hardened(script: str, *, bash_only: bool = False, prepare_name: str = "") -> str:
    made = harden(script.encode(), "train.sh", "", follow.NoFiles(), "/nowhere", bash_only=bash_only,
                  prepare_name=prepare_name)  # fmt: skip
    return made.text.decode()


@pytest.mark.parametrize("bash_only", [False, True], ids=["launcher", "bash"])
def test_every_script_becomes_one_that_bash_reads_and_in_which_nothing_is_found(bash_only):
    scripts = []
    for title, script in EVERY:
        better = hardened(script, bash_only=bash_only)
        scripts.append(better)
        if title not in NOT_MENDED:
            assert not lint(better).findings, f"{title}\n{better}"
            assert hardened(better, bash_only=bash_only) == better, title
        for line in script.splitlines():
            if line.lstrip().startswith("#") and not line.startswith("#!"):
                assert line in better.splitlines(), title
    for better in scripts:
        done = subprocess.run(["bash", "-n"], input=better, text=True, capture_output=True)
        assert done.returncode == 0, f"{done.stderr}\n{better}"


def test_a_script_in_which_nothing_is_found_is_not_touched():
    clean = [script for _, script in EVERY if not lint(script).findings]
    assert len(clean) > 20
    assert all(hardened(script) == script for script in clean)


MENDED = [
    ("torchrun train.py 2>&1 | tee log", "exec trainwatch-launch -- torchrun train.py"),
    ('torchrun train.py |& tee -a "logs/x"  # why', 'exec trainwatch-launch --root "logs" -- torchrun train.py  # why'),
    ("A=1 torchrun train.py | tee log\necho end", "A=1 trainwatch-launch -- torchrun train.py\necho end"),
    ("torchrun train.py || true\n./upload.sh",
     'RET=0\ntorchrun train.py || RET=$?\n./upload.sh || RET=$?\nexit "$RET"'),
    ("torchrun train.py || echo failed", 'RET=0\ntorchrun train.py || { RET=$?; echo failed; }\nexit "$RET"'),
    ("srun python train.py\necho end\nexit 0", 'RET=0\nsrun python train.py || RET=$?\necho end\nexit "$RET"'),
    ("python train.py\necho x\nrc=$?\nexit $rc",
     "set +e\npython train.py\nRET=$?\nset -e\necho x\nrc=$RET\nexit $rc"),
    ("export A=$(python a.py) B=1\npython train.py", "A=$(python a.py)\nexport B=1 A\npython train.py"),
    ("python train.py 2>&1 > log", "python train.py > log 2>&1"),
    ("OUT=$1\nrm -rf $OUT/*", 'OUT=${1:-}\nrm -rf "${OUT:?}"/*'),
    ("python a.py &\necho x",
     'PIDS=()\nRET=0\npython a.py & PIDS+=("$!")\necho x\n'
     'for pid in "${PIDS[@]}"; do wait "$pid" || RET=$?; done\nexit "$RET"'),
    ("cd x\nmkdir logs\ngrep -c a b\npython train.py", "cd x\nmkdir -p logs\ngrep -c a b || true\npython train.py"),
    ("set -e\nf() {\n  python a.py\n  python b.py\n}\nif f; then python train.py; fi",
     "set -e\nf() {\n  python a.py || return\n  python b.py\n}\nif f; then python train.py; fi"),
    ("set -e\nsrun bash -c 'python a.py; python train.py'",
     "set -e\nsrun bash -eo pipefail -c 'python a.py; python train.py'"),
    ("source env.sh\nconda activate x\npython train.py",
     "set +u\nsource env.sh || exit 1\nconda activate x || exit 1\nset -u\npython train.py"),
    ("python train.py $MASTER_ADDR $RANK $OPTS", 'python train.py "$MASTER_ADDR" "$RANK" ${OPTS:-}'),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), MENDED)
def test_what_is_written_instead(before, after):
    better = hardened(f"#!/bin/bash\n{before}\n").splitlines()
    added = ("#!/bin/bash", "set -euo pipefail", "set -uo pipefail")
    assert "\n".join(line for line in better if line not in added and "[Phase]" not in line) == after
    assert set(added) & set(better[1:])


def test_a_log_that_the_script_reads_is_still_written_by_tee():
    better = hardened("#!/bin/bash\ntorchrun train.py 2>&1 | tee log\ngrep loss log\n")
    assert "{ torchrun train.py; } > >(tee -i log) 2>&1 || RET=$?\nfinish \"$!\" \"$RET\"\ngrep loss log" in better


QUIET_FAILURES = """\
#!/bin/bash
# comments are kept
mkdir logs
mkdir -p logs
grep -c WARN nothing.log
count=$(ls *.pt 2> /dev/null | wc -l)
n=0
((n++))
[ -d ckpt ] && echo resume
say() { [ -n "$1" ] && echo "$1"; }
say
say hello
if [ -n "$DEBUG" ]; then echo debug; fi
for f in a b; do [ -f $f ] && echo $f; done
read -r line < /dev/null
python prepare.py $EXTRA_ARGS ${SUFFIX%.x} "$((COUNT + 1))" "$count" "$n"
rc=5
python other.py
if [ $? -ne 0 ]; then echo "other failed"; fi
ls nowhere | sort
python train.py --out out "$@" || true
echo "end $rc"
"""


@pytest.mark.parametrize("bash_only", [False, True])
def test_what_may_fail_today_or_is_not_set_today_ends_no_script(tmp_path, bash_only):
    world = World(tmp_path)
    world.stub("python", 'echo "python $*"; exit 0')
    code, _, output = world.run(QUIET_FAILURES)
    better = hardened(QUIET_FAILURES, bash_only=bash_only)
    assert "set -euo pipefail" in better
    better_code, _, better_output = world.run(better)
    said = sorted(line for line in better_output.splitlines() if "[Phase]" not in line and "nowhere" not in line)
    assert said == sorted(line for line in output.splitlines() if "nowhere" not in line)
    assert better_code == code == 0


def test_a_diff_is_printed_with_reasons_and_nothing_is_written(tmp_path, capfdbinary):
    script = tmp_path / "train.sh"
    script.write_bytes(b"#!/bin/bash\n# \xff kept\ntorchrun train.py || true\n")
    assert main(["harden", "--diff", str(script)]) == 0
    out = capfdbinary.readouterr().out
    assert b"-torchrun train.py || true\n+set -euo pipefail\n" in out
    assert b"# \xff kept" in out
    assert b"- a failure is not taken for success" in out
    assert [path.name for path in tmp_path.iterdir()] == ["train.sh"]


def test_what_cannot_be_mended_is_listed(tmp_path, capsys):
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/bash\nset -eu\ntrap '' TERM\ntorchrun train.py\n")
    assert main(["harden", "--diff", str(script)]) == 1
    assert "left as it is: line 4: trap-masks-exit: TERM is ignored" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "why"),
    [("#!/usr/bin/python3\n", "not a script"), ("if then (( fi\n", "not understood from here"), (None, "No such file")],
)
def test_what_is_no_script_is_refused(tmp_path, capsys, text, why):
    script = tmp_path / "x.sh"
    if text is not None:
        script.write_text(text)
    assert main(["harden", str(script)]) == 2
    assert why in capsys.readouterr().err


def test_a_command_line_is_hardened_too(capfd):
    assert main(["harden", "--command", "cd x; torchrun train.py 2>&1 | tee log"]) == 0
    out = capfd.readouterr().out.splitlines()
    assert out[0] == "set -euo pipefail"
    assert out[-1] == "exec trainwatch-launch -- torchrun train.py"


def test_installs_and_downloads_move_to_a_script_of_their_own(tmp_path):
    script = tmp_path / "train.sh"
    script.write_text(
        "#!/bin/bash\nset -euo pipefail\nURL=https://x\npip install -r r.txt  # the packages\n"
        "wget -q $URL/a.json\ncurl -LO https://x/b.tgz && tar xf b.tgz\ngit clone --depth 1 https://x/repo.git\n"
        "for f in 1 2; do wget https://x/$f; done\necho '=== [Phase] train ==='\ntorchrun train.py\n"
    )
    assert main(["harden", str(script), "-o", str(tmp_path / "job.sh")]) == 0
    prepare = (tmp_path / "job.prepare.sh").read_text().splitlines()
    assert prepare[-7:-1] == [
        "URL=https://x",
        "pip install -r r.txt",
        "wget -q $URL/a.json",
        "[ -e b.tgz ] || { curl -L https://x/b.tgz -o b.tgz.part && mv b.tgz.part b.tgz; }",
        "[ -e b.tgz.unpacked ] || { tar xf b.tgz && touch b.tgz.unpacked; }",
        "[ -d repo ] || git clone --depth 1 https://x/repo.git",
    ]
    assert prepare[-1].startswith("touch ")
    job = (tmp_path / "job.sh").read_text()
    assert "pip" not in job.replace("pipefail", "")
    assert "# trainwatch: ignore[setup-on-gpu-time] it stays in the job" in job
    assert not lint(job, "job.sh", str(tmp_path / "job.sh"), str(tmp_path)).findings
    assert (tmp_path / "job.sh").stat().st_mode & 0o100

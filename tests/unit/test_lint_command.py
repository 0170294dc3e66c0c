"""`trainwatch lint`: what is printed, in which form, and with which exit code."""
from __future__ import annotations

import io
import json
import sys

import pytest

from trainwatch.cli import main
from trainwatch.lint.findings import RULES

BAD = "#!/bin/bash\nset -euo pipefail\necho '=== [Phase] x ==='\n\ttorchrun 'a\x1b[31m' train.py || true\n"
GOOD = "#!/bin/bash\nset -euo pipefail\ntrue\n"


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.sh"
    path.write_text(BAD)
    return str(path)


def test_a_finding_is_shown_with_its_line_a_caret_why_and_the_fix(script, capsys):
    assert main(["lint", script]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0] == f"{script}:4:2: error or-true: a failure of torchrun is hidden: {RULES['or-true'].why}"
    assert out[1].index("torchrun") == out[2].index("^")
    assert out[3].strip().startswith("fix: ")
    assert out[4] == "1 finding: 1 error"
    assert "\x1b" not in "".join(out)


def test_nothing_found_is_0_and_unreadable_is_2(tmp_path, capsys):
    (tmp_path / "good.sh").write_text(GOOD)
    (tmp_path / "bad.py").write_text("#!/usr/bin/python3\n")
    assert main(["lint", str(tmp_path / "good.sh")]) == 0
    assert capsys.readouterr().out == "nothing found\n"
    assert main(["lint", str(tmp_path / "good.sh"), str(tmp_path / "gone.sh"), str(tmp_path / "bad.py"), "/"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert [line.rpartition(": ")[2] for line in said] == [
        "No such file or directory", "its first line is #!/usr/bin/python3", "Is a directory"]  # fmt: skip
    assert main(["lint"]) == 2
    assert "--command" in capsys.readouterr().err


def test_json_has_findings_and_what_was_not_followed(script, capsys):
    assert main(["lint", "--json", script, "--command", "bash gone.sh | tee log"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(one["file"], one["line"], one["rule"], one["severity"]) for one in found["findings"]] == [
        (script, 4, "or-true", "error"),
        ("command", 1, "pipe-masks-exit", "error"),
    ]
    assert set(found["findings"][0]) == {"rule", "file", "line", "column", "severity", "message", "fix"}
    assert found["not_followed"] == [{"file": "command", "line": 1, "script": "gone.sh", "why": "not found"}]


def test_standard_input_is_a_file_too(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    assert main(["lint", "--json", "-"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["file"] == "-"


def test_github_and_sarif(script, capsys):
    assert main(["lint", "--format", "github", script]) == 1
    line = capsys.readouterr().out.splitlines()[0]
    assert line.startswith(f"::error file={script},line=4,col=2,title=or-true::")
    assert main(["lint", "--format", "sarif", script]) == 1
    run = json.loads(capsys.readouterr().out)["runs"][0]
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == set(RULES)
    assert run["results"][0]["ruleId"] == "or-true"
    assert run["results"][0]["locations"][0]["physicalLocation"]["region"] == {"startLine": 4, "startColumn": 2}


def test_rules_are_left_out_by_option_by_comment_and_by_configuration(script, tmp_path, capsys, monkeypatch):
    assert main(["lint", "--ignore", "or-true", script]) == 0
    assert main(["lint", "--ignore", "or-tru", script]) == 2
    assert "did you mean or-true?" in capsys.readouterr().err
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "trainwatch").mkdir()
    configuration = tmp_path / "trainwatch" / "config.toml"
    configuration.write_text('[lint]\nignore = ["or-true"]\n')
    assert main(["lint", script]) == 0
    configuration.write_text('[lint]\nignore = "or-true"\n')
    assert main(["lint", script]) == 2
    assert "lint.ignore must be a list" in capsys.readouterr().err


def test_the_rules_can_be_listed(capsys):
    assert main(["lint", "--rules"]) == 0
    out = capsys.readouterr().out
    assert all(f"{rule.name} ({rule.severity})" in out for rule in RULES.values())

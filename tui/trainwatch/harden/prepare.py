"""Installs and downloads move to a prepare script; the job does them only when they were not done before."""
from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import PurePath

from trainwatch.harden.plan import Plan
from trainwatch.harden.view import View
from trainwatch.lint import syntax
from trainwatch.lint.catalog import Kind
from trainwatch.lint.commands import Call, is_setup
from trainwatch.lint.syntax import AndOr, Item, Literal, Node, Pipeline, Simple, Word

HEAD = """\
#!/bin/bash
# Installs and downloads of {name}, moved out of the job so that no GPU waits for them.
# Run it once before the job: on a machine without GPUs that has the job's storage (downloads), and in the job's image
# or its environment (installs). It can be run again: what is there already is left alone.
set -euo pipefail
"""
STAMP = "/var/tmp/{name}.done"
"""Says inside a container that its installs were made: unlike files on a shared disk they cannot be seen."""


@dataclass(frozen=True)
class Moved:
    """A statement that is moved: as it will be written, and the file or directory that it makes, if it is known."""

    text: str
    product: str
    """A word for the shell, relative to where the statement stands; `` when it is not known."""


def move(plan: Plan) -> None:
    """Move what can be moved, and make idempotent what stays."""
    view, state = plan.view, plan.state
    if "setup" in state.done or not view.marks("setup-on-gpu-time"):
        return
    state.done.add("setup")
    offsets = {mark.offset for mark in view.marks("setup-on-gpu-time") if mark.source is view.source}
    found = [item for item in view.source.script.body
             if any(item.node.start <= at < item.node.end for at in offsets) and _movable(view, item)]  # fmt: skip
    if state.prepare_name:
        _move(plan, found)
        staying = [at for at in offsets if not any(item.node.start <= at < item.node.end for item in found)]
    else:
        staying = sorted(offsets)
    _mend_in_place(plan, staying)


def _movable(view: View, item: Item) -> bool:
    """Whether a statement is setup and nothing else, and needs nothing that only the job knows."""
    node = item.node
    if item.background or not isinstance(node, (Simple, Pipeline, AndOr)):
        return False
    for one in syntax.commands(node):
        if isinstance(one, (Simple, Pipeline, AndOr)):
            if isinstance(one, Simple) and (view.walk.kind(one) > Kind.SETUP or view.walk.function(one.name)):
                return False
            if any(redirect.body is not None for redirect in one.redirects):
                return False
        else:
            return False
    return all(_is_known(view, name, node.start) for name in _names(node))


def _names(node: Node) -> set[str]:
    words = [word for one in syntax.commands(node) for word in syntax.words_of(one)]
    return {variable.name for word in words for variable in word.variables()}


def _is_known(view: View, name: str, before: int) -> bool:
    """Whether a variable is the environment's, or set by literal assignments, which can be copied."""
    if not name[:1].isalpha() and name[:1] != "_":
        return False
    for node in view.source.nodes:
        if isinstance(node, syntax.Loop) and node.variable == name:
            return False
        if isinstance(node, Simple):
            for one in (*node.assigns, *node.declared):
                if one.name == name and (node.start > before or _is_dynamic(one) or not _is_top(view, node)):
                    return False
            if node.name == "read" and any(word.text == name for word in node.words[1:]):
                return False
    return True


def _is_dynamic(one: syntax.Assignment) -> bool:
    return any(not isinstance(part, (Literal, syntax.Variable)) for word in one.words() for part in word.parts)


def _is_top(view: View, node: Node) -> bool:
    return any(item.node is node for item in view.source.script.body)


def _move(plan: Plan, found: list[Item]) -> None:
    view, state = plan.view, plan.state
    if not found:
        return
    wanted = set().union(*(_names(item.node) for item in found))
    lines, products, whole = list[str](), list[str](), True
    directory = ""
    for item in view.source.script.body:
        node = item.node
        if item in found:
            for one in _statements(view, node):
                lines.append(one.text)
                whole = whole and bool(one.product)
                products += [f"{directory}{one.product}"] if one.product else []
        elif isinstance(node, Simple) and _sets(node) & wanted and node.start < found[-1].node.start:
            lines.append(view.raw(node))
        elif isinstance(node, Simple) and node.name == "cd" and node.start < found[-1].node.start:
            lines.append(view.raw(node))
            where = node.words[1].text if len(node.words) > 1 else None
            directory = f"{directory}{where}/" if where and not where.startswith("/") else f"{where}/" if where else "?"
    stamp = STAMP.format(name=state.prepare_name)
    conditions = [f"[ ! -e {word} ]" for word in dict.fromkeys(products) if "?" not in word]
    whole = whole and bool(conditions)
    conditions += [] if whole else [f"[ ! -e {stamp} ]"]
    if not whole:
        lines.append(f"touch {stamp} 2> /dev/null || true")
    state.prepare = [*HEAD.format(name=PurePath(view.source.name).name).splitlines(), *lines]
    why = f"GPUs do not wait for it: it is in {state.prepare_name} now, to be run before the job"
    for item in found:
        start, end = _whole_line(view, item)
        plan.edits.replace(start, end, "", why)
    at = found[0].node.start
    top = view.text.rfind(b"\n", 0, at) + 1
    place = '"$(dirname "${BASH_SOURCE[0]}")/' + state.prepare_name + '"'
    if view.source.shell == "sh":
        place = '"$(dirname "$0")/' + state.prepare_name + '"'
    plan.insert(
        top,
        f"# Installs and downloads are in {state.prepare_name}: run it before the job, then no GPU waits for them.\n"
        f"if {' || '.join(conditions)}; then\n"
        f'    echo "WARNING: {state.prepare_name} was not run before the job: it runs now, and GPUs wait for it" >&2\n'
        f"    bash {place}\nfi\n",
        why,
    )


def _sets(node: Simple) -> set[str]:
    return {one.name for one in (*node.assigns, *node.declared)} if not node.words or node.declared else set()


def _whole_line(view: View, item: Item) -> tuple[int, int]:
    """The bytes to take away: with the line, when nothing else is on it."""
    start, end = item.node.start, view.end(item)
    line, after = view.text.rfind(b"\n", 0, start) + 1, view.text.find(b"\n", end)
    after = len(view.text) if after < 0 else after
    rest = view.text[end:after].strip()
    if view.text[line:start].strip():
        return start, end
    if not rest or rest == b";" or rest.startswith(b"#"):
        return line, min(after + 1, len(view.text))
    return start, end + view.text[end:after].find(rest) + (1 if rest.startswith(b";") else 0)


def _statements(view: View, node: Node) -> list[Moved]:
    """A statement as the prepare script has it: chains of && taken apart, each command made to run once."""
    if isinstance(node, AndOr) and all(operator == "&&" for operator, _ in node.rest):
        return [one for part in (node.first, *(part for _, part in node.rest)) for one in _statements(view, part)]
    if not isinstance(node, Simple):
        return [Moved(view.raw(node), "")]
    return [once(view, node)]


def once(view: View, node: Simple) -> Moved:
    """A command so that it does nothing when its work was done, if that can be seen."""
    raw, call = view.raw(node), view.walk.resolve(node)
    if call.wrappers or node.redirects:
        return Moved(raw, "")
    if call.name == "git" and call.texts[:1] == ["clone"]:
        product = _cloned(call)
        return Moved(f"[ -d {product} ] || {raw}", product) if product else Moved(raw, "")
    if call.name == "mkdir" and not any("p" in text for text in call.texts if text.startswith("-")):
        return Moved(raw.replace("mkdir", "mkdir -p", 1), "")
    if call.name in ("wget", "curl"):
        return _downloaded(raw, call)
    if call.name in ("unzip", "tar"):
        return _unpacked(raw, call)
    return Moved(raw, "")


def _cloned(call: Call) -> str:
    """The directory that `git clone` makes, as a word for the shell."""
    plain, skip = list[Word](), False
    for word in call.words[2:]:
        if skip:
            skip = False
        elif word.known.startswith("-"):
            skip = word.known in ("-b", "--branch", "--depth", "-o", "--origin", "-c", "--reference", "-j", "--jobs")
        else:
            plain.append(word)
    if len(plain) > 1:
        return plain[1].raw
    if len(plain) == 1 and plain[0].text is not None:
        return shlex.quote(plain[0].text.rstrip("/").rpartition("/")[2].removesuffix(".git"))
    return ""


def _downloaded(raw: str, call: Call) -> Moved:
    """A download to a name of its own first, so that half a file is never taken for a whole one."""
    words, texts = call.words[1:], call.texts
    plain = [word for at, word in enumerate(words) if not word.known.startswith("-")
             and (at == 0 or texts[at - 1] not in ("-O", "-o", "-P", "--output", "--output-document"))]  # fmt: skip
    flag = next((at for at, text in enumerate(texts) if text in ("-O", "-o", "--output", "--output-document")), None)
    lower_o = call.name == "wget" and flag is not None and texts[flag] == "-o"
    if lower_o or any(text in ("-P", "-r", "-m", "-i", "--recursive", "--directory-prefix") for text in texts):
        return Moved(raw, "")
    bundled = [text for text in texts if call.name == "curl" and text[:1] == "-" and text[1:2] != "-" and "O" in text]
    if len(plain) != 1:
        return Moved(raw, "")
    if flag is not None and not bundled and flag + 1 < len(words):
        target = words[flag + 1]
        part = raw.replace(target.raw, _with(target.raw, ".part"), 1) if raw.count(target.raw) == 1 else ""
        return _then_moved(part, target.raw, raw)
    url = plain[0].text
    if url is None or "?" in url or not url.rstrip("/").rpartition("/")[2]:
        return Moved(raw, "")
    target_name = shlex.quote(url.rpartition("/")[2])
    if call.name == "wget" and flag is None:
        return _then_moved(f"{raw} -O {_with(target_name, '.part')}", target_name, raw)
    if bundled:
        rest = bundled[0].replace("O", "")
        part = raw.replace(bundled[0], rest if rest != "-" else "", 1).replace("  ", " ")
        return _then_moved(f"{part} -o {_with(target_name, '.part')}", target_name, raw)
    return Moved(raw, "")


def _with(word: str, suffix: str) -> str:
    return word[:-1] + suffix + word[-1] if word[-1:] in ("'", '"') else word + suffix


def _then_moved(part: str, target: str, raw: str) -> Moved:
    if not part or not target.strip("\"'"):
        return Moved(raw, "")
    return Moved(f"[ -e {target} ] || {{ {part} && mv {_with(target, '.part')} {target}; }}", target)


def _unpacked(raw: str, call: Call) -> Moved:
    """An archive is unpacked once: a file beside it says that it was, to the end."""
    ends = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst")
    archives = [word for word in call.words[1:] if word.known.endswith(ends)]
    if call.name == "unzip" and not any(text[:1] == "-" and set(text) & set("on") for text in call.texts):
        raw = raw.replace("unzip", "unzip -o", 1)  # without it unzip asks, and nobody is there to answer
    if len(archives) != 1:
        return Moved(raw, "")
    mark = _with(archives[0].raw, ".unpacked")
    return Moved(f"[ -e {mark} ] || {{ {raw} && touch {mark}; }}", mark)


def _mend_in_place(plan: Plan, offsets: list[int]) -> None:
    """What stays in the job is at least done only once, and is marked as known."""
    view = plan.view
    for at in offsets:
        node = view.simple_at(at)
        item = view.item_of(node) if node is not None else None
        why = "it stays in the job, because it needs what only the job knows" if plan.state.prepare_name else (
            "it stays in the job: with -o OUT it moves to a prepare script")  # fmt: skip
        if node is not None and item is not None and is_setup(view.walk.resolve(node)):
            made = once(view, node)
            if made.text != view.raw(node):
                plan.edits.replace(node.start, node.end, made.text, "done only when it was not done before")
        _silence(plan, at, why)


def _silence(plan: Plan, at: int, why: str) -> None:
    """A comment that says so, before the line."""
    view = plan.view
    line = view.text.rfind(b"\n", 0, at) + 1
    previous = view.text[view.text.rfind(b"\n", 0, max(line - 1, 0)) + 1 : line]
    if previous.rstrip().endswith(b"\\") or b"trainwatch: ignore" in previous:
        return
    text = view.text[line:at]
    indent = text[: len(text) - len(text.lstrip())].decode()
    plan.insert(line, f"{indent}# trainwatch: ignore[setup-on-gpu-time] {why}\n", why)

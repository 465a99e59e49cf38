"""What a line writes, compared with what a real bash writes: nothing may be missing from the prediction."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coord.integrations.shell_commands.line import CommandLine
from tests.support.git_folders import git, made_repository

Snapshot = dict[str, tuple[str, bytes, int]]
FILES = ("a.py", "b.py", "c d.txt", "src/e.py", "src/f.py", "src/deep/g.py", "lib/h.py", "[x].py", "-dash")
SOAK = bool(os.environ.get("COORD_SOAK"))
ENVIRON = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}


def sandbox(folder: Path) -> Path:
    """A folder with files, a folder with a link to it, and a home."""
    root = folder / "root"
    for name in FILES:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name} old\n")
    (root / "link").symlink_to("src")
    (folder / "home").mkdir(exist_ok=True)
    (folder / "home/settings").write_text("old\n")
    return root


def snapshot(folder: Path) -> Snapshot:
    """Every file and link with its content and its mode."""
    found: Snapshot = {}
    for root, _, names in os.walk(folder):
        if ".git" in root.split("/"):
            continue
        for name in names:
            path = os.path.join(root, name)
            if os.path.islink(path):
                found[path] = ("link", os.readlink(path).encode(), 0)
            else:
                found[path] = ("file", Path(path).read_bytes(), os.stat(path).st_mode)
    for root, names, _ in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            if os.path.islink(path):
                found[path] = ("link", os.readlink(path).encode(), 0)
    return found


def covers(line: CommandLine, path: str) -> bool:
    for write in line.writes:
        for spelled in (os.path.normpath(write.path), _real(write.path)):
            if path == spelled or (write.tree and f"{path}/".startswith(f"{spelled}/")):
                return True
    return False


def _real(path: str) -> str:
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)) if path else path


def missing(text: str, root: Path, folder: Path, shell: str = "bash") -> tuple[list[str], CommandLine]:
    """Run a line for real; return the changed files that were not predicted."""
    line = CommandLine(text, str(root), {"HOME": str(folder / "home"), **ENVIRON})
    reals = {_real(write.path): os.path.realpath(write.path) for write in line.writes}
    assert line.effects is not None
    before = snapshot(folder)
    subprocess.run(
        [shell, "-c", text],
        cwd=root,
        env={"HOME": str(folder / "home"), **ENVIRON},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
    after = snapshot(folder)
    changed = [path for path in {*before, *after} if before.get(path) != after.get(path)]
    through = set(reals.values())
    return [path for path in changed if not covers(line, path) and path not in through], line


KNOWN = [
    "echo x > a.py",
    "echo x>a.py",
    "echo x >> 'c d.txt'",
    "echo x >| a.py",
    "echo x &> a.py",
    "echo x &>> a.py",
    "echo x >& a.py",
    "ls missing 2> a.py",
    "> a.py",
    ": > a.py",
    "cat a.py > b.py 2>&1",
    "{ echo x; echo y; } > a.py",
    "( cd src; echo x > e.py )",
    "cd src && echo x > e.py",
    "cd src; cd deep; rm g.py",
    "cd src && cd - > /dev/null && rm a.py",
    "pushd src > /dev/null; rm e.py; popd > /dev/null",
    "cd missing; echo x > a.py",
    "cd missing && echo x > a.py; echo y > b.py",
    "cd missing || echo x > a.py",
    "if cd missing; then cd src; else echo x > a.py; fi && echo x > b.py",
    "{ exit; } > /missing/x || echo x > a.py",
    "cd link && rm e.py",
    "cd src/../lib && rm h.py",
    "echo x | tee a.py b.py > /dev/null",
    "echo x | tee -a src/e.py",
    "sed -i s/old/new/ a.py b.py",
    "sed -i.bak s/old/new/ a.py",
    "sed -i.bak -e s/old/new/ -e s/a/b/ -- a.py",
    "sed -n -i -e s/old/new/p a.py",
    "sed -Ei 's/(o)ld/new/' a.py",
    "sed --in-place=.orig s/old/new/ a.py",
    "sed --in-pl s/old/new/ src/e.py src/f.py",
    "cp a.py b.py",
    "cp a.py src",
    "cp a.py b.py src/",
    "cp -t src a.py b.py",
    "cp --target-directory=src a.py",
    "cp -r src copy",
    "cp -r src lib",
    "cp -r src/. lib",
    "cp -rT src lib",
    "mv a.py b.py",
    "mv a.py src",
    "mv src other",
    "mv src lib",
    "mv -t lib a.py b.py",
    "install -m 644 a.py b.py",
    "install -D a.py new/deep/x.py",
    "ln -sf b.py a.py",
    "ln -f b.py a.py",
    "ln -s ../a.py src",
    "ln a.py hard",
    "rm a.py",
    "rm -f a.py missing 'c d.txt'",
    "rm -rf src",
    "rm -- -dash",
    "unlink a.py",
    "shred -u a.py",
    "dd if=b.py of=a.py status=none",
    "dd of=~/settings if=b.py status=none",
    "truncate -s 0 a.py",
    "truncate --size=3 a.py b.py",
    "touch new.py",
    "chmod +x a.py",
    "chmod -w a.py",
    "chmod -R u+x src",
    "mkdir d && cp a.py d",
    "mkdir -p x/y && mv a.py x/y/",
    "echo x > ~/settings",
    'echo x > "$HOME/settings"',
    'echo x > "$PWD"/a.py',
    "echo x > ${PWD}/a.py",
    "f=a.py; echo x > $f",
    'f="c d.txt"; rm "$f"',
    "f='a.py b.py'; rm $f",
    "export F=a.py; rm $F",
    "for f in a.py b.py; do rm $f; done",
    'for f in src/*.py; do sed -i s/old/new/ "$f"; done',
    "for d in src lib; do (cd $d && rm *.py); done",
    "if true; then rm a.py; else rm b.py; fi",
    "if false; then rm a.py; elif true; then rm b.py; fi",
    "case x in y) rm a.py;; x) rm b.py;; esac",
    "while true; do rm a.py; break; done",
    "rm_it() { rm $1; }; rm_it a.py",
    "function g { cd src; rm e.py; }; g; rm f.py",
    "f() ( cd src; rm e.py ); f; rm a.py",
    "bash -c 'rm a.py'",
    "bash -c 'rm $1' x b.py",
    'sh -c "cd src && rm e.py"',
    "env X=1 rm a.py",
    "env -C src rm e.py",
    "nohup rm a.py",
    "timeout 5 rm a.py",
    "timeout -k 1 5 rm a.py",
    "command rm a.py",
    "exec rm a.py",
    "time rm a.py",
    "nice -n 5 rm a.py",
    "eval 'rm a.py'",
    "rm {a,b}.py",
    "touch x{1..3}.txt",
    "touch {y,z}{1,2}",
    "rm *.py",
    "rm src/*.py src/deep/?.py",
    r"rm \[x\].py",
    "rm '[x].py'",
    "rm [ab].py",
    r"rm c\ d.txt",
    "rm c' 'd.txt",
    'rm "a"\\.py',
    "rm $'c d.txt'",
    "rm a.py & wait",
    "rm a.py && rm b.py || rm src/e.py",
    "false || rm a.py",
    "! rm a.py",
    "true; rm a.py # > b.py",
    "rm a.py \\\n  b.py",
    "echo $(rm a.py)",
    "echo `rm a.py`",
    'x="$(rm a.py)"; rm b.py',
    "cat <(rm a.py)",
    "echo a.py | xargs rm",
    "printf '%s\\n' a.py b.py | xargs -n 1 rm -f",
    "echo a.py | xargs -I{} cp {} src/{}",
    "echo 'rm a.py' | bash",
    "cat > a.py <<'E'\nnew $x\nE",
    "cat <<E > a.py && rm b.py\nnew\nE",
    "bash <<'E'\nrm a.py\nE",
    "cat <<'E' | sh\nrm a.py\nE",
    "bash <<< 'rm a.py'",
    "exec 3> a.py; echo x >&3",
    "echo x 1> a.py 2> b.py",
    ">a.py echo x",
    "A=1 >a.py echo x >b.py y",
    "cd src; { rm e.py; } > ../a.py",
    "cd src && cat e.py | tee f.py > ../b.py",
    "sort -o a.py b.py",
    "uniq a.py b.py",
    "exit 0; rm a.py",
    "rsync -a src/ lib" if os.path.exists("/usr/bin/rsync") else "cp -a src/. lib",
    'set -- a.py b.py; rm $1 "$2"',
    "[[ -f a.py ]] && rm a.py",
    "test -f a.py && echo x > b.py",
    "echo 'a > b.py' \"> c\"",
    "echo $((1 > 2))",
]
UNKNOWN = [
    "rm $(echo a.py)",
    "f() { ! { echo x > a.py; }; exit; }; f; f",
    "! { rm a.py; }; exit",
    "f() { ! { cat a.py; }; exit; }; f",
    "rm ${f%.x}a.py",
    "find . -name a.py -delete",
    "find src -exec rm {} +",
    "ls *.py | xargs rm",
    "python3 -c \"open('a.py', 'w')\"",
    "python3 - <<'E'\nopen('a.py', 'w')\nE",
    "x=rm; y=a.py; $x $(printf $y)",
    "while read f; do rm $f; done <<< a.py",
    ". ./-dash; rm a.py",
    "cat <<A <<B\nA\nB\nrm a.py",
    "echo x <> a.py >&0",
    "alias q=rm; rm a.py",
    "perl -pi -e s/old/new/ a.py b.py",
    "perl -i.bak -ne 'print' a.py",
    "shopt -s extglob; rm !(b).py",
    "IFS=:; f=a.py:b.py; rm $f",
    "trap 'rm a.py' EXIT",
    "patch a.py <<'E'\n--- a.py\n+++ a.py\n@@ -1 +1 @@\n-a.py old\n+new\nE",
    "patch -p1 <<'E'\n--- a/src/e.py\n+++ b/src/e.py\n@@ -1 +1 @@\n-src/e.py old\n+new\nE",
    "sed -n 'w b.py' a.py",
]


@pytest.mark.parametrize("text", KNOWN)
def test_a_known_form_is_predicted(text: str, tmp_path: Path) -> None:
    """Each form is understood in whole, and everything that bash changes is predicted."""
    unpredicted, line = missing(text, sandbox(tmp_path), tmp_path)
    assert not unpredicted
    assert not line.effects.unknown


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_cannot_be_told_is_unknown(text: str, tmp_path: Path) -> None:
    """What depends on the run is never taken for known, and never for reading."""
    root = sandbox(tmp_path)
    line = CommandLine(text, str(root), {"HOME": str(tmp_path / "home"), **ENVIRON})
    assert line.effects.unknown
    assert not line.only_reads()


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("perl -pi -e s/old/new/ a.py b.py", {"a.py", "b.py"}),
        ("perl -i.bak -ne print a.py", {"a.py"}),
        ("ruby -i -pe 1 a.py", {"a.py"}),
        ("patch a.py < x.patch", {"a.py"}),
        ("patch -p1 <<'E'\n--- a/src/e.py\n+++ b/src/e.py\n@@ -1 +1 @@\n-x\n+y\nE", {"src/e.py"}),
        ("gawk -i inplace '{print}' a.py", {"a.py"}),
        ("sed -n 'w b.py' a.py", {"b.py"}),
        ("echo x <> a.py", {"a.py"}),
        ("black a.py src", {"a.py", "src"}),
        ("black --check a.py", set()),
        ("python3 -m black a.py", {"a.py"}),
        ("ruff format a.py", {"a.py"}),
        ("ruff check --fix src", {"src"}),
        ("ruff check src", set()),
        ("isort a.py", {"a.py"}),
        ("npx prettier --write a.py", {"a.py"}),
        ("npx --yes prettier@3 -w src", {"src"}),
        ("pnpm exec eslint --fix a.py", {"a.py"}),
        ("yarn prettier --write a.py", {"a.py"}),
        ("npm exec -- prettier --write a.py", {"a.py"}),
        ("uv run black a.py", {"a.py"}),
        ("eslint a.py", set()),
        ("gofmt -w a.py", {"a.py"}),
        ("gofmt -l a.py", set()),
        ("rustfmt a.py", {"a.py"}),
        ("cargo fmt -- a.py", {"a.py"}),
        ("clang-format -i a.py", {"a.py"}),
        ("autopep8 -i a.py", {"a.py"}),
        ("dos2unix a.py", {"a.py"}),
        ("curl -o a.py https://example.org", {"a.py"}),
        ("vim a.py", {"a.py"}),
        ("sudo -u ada tee a.py", {"a.py"}),
        ("coord guard other -- rm a.py", {"a.py"}),
        ("coord guard a.py -- rm a.py", set()),
        ("rsync -a x/ host:y", set()),
        ("rsync -a src/ lib", {"lib/e.py", "lib/f.py", "lib/deep"}),
    ],
)
def test_programs_that_are_not_run_here(text: str, written: set[str], tmp_path: Path) -> None:
    """Formatters and the like: the files that they are given."""
    root = sandbox(tmp_path)
    line = CommandLine(text, str(root), {"HOME": str(tmp_path / "home"), **ENVIRON})
    found = {os.path.relpath(write.path, root) for write in line.writes}
    assert written <= found
    assert found <= {*written, "e.py", "a/src/e.py", "b/src/e.py", "a.py.bak"}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with two branches, changed, staged, untracked and ignored files, and a stash."""
    root = tmp_path_factory.mktemp("template") / "root"
    made_repository(root)
    for name in ("a.py", "b.py", "src/e.py", "src/f.py"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("old\n")
    (root / ".gitignore").write_text("*.log\nbuild/\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    git(root, "checkout", "-q", "-b", "other")
    (root / "b.py").write_text("other\n")
    git(root, "commit", "-q", "-a", "-m", "second")
    git(root, "checkout", "-q", "-")
    (root / "src/f.py").write_text("stashed\n")
    git(root, "stash", "-q")
    (root / "a.py").write_text("changed\n")
    (root / "new.py").write_text("untracked\n")
    (root / "dir").mkdir()
    (root / "dir/new.py").write_text("untracked\n")
    (root / "x.log").write_text("ignored\n")
    git(root, "config", "alias.undo", "checkout --")
    git(root, "config", "alias.zap", "!rm -f b.py; true")
    return root


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("git checkout -- a.py", True),
        ("git checkout a.py", True),
        ("git checkout .", True),
        ("cd src && git checkout -- ../a.py", True),
        ("git -C src checkout -- ../a.py", True),
        ("git checkout HEAD -- a.py", True),
        ("git checkout other -- b.py", True),
        ("git checkout other", True),
        ("git checkout -f other", True),
        ("git checkout -b third", False),
        ("git checkout -b third other", True),
        ("git switch other", True),
        ("git switch -f other", True),
        ("git switch -c third", False),
        ("git restore a.py", True),
        ("git restore --source=other b.py", True),
        ("git restore -s other -W -S -- b.py", True),
        ("git restore --staged a.py", False),
        ("git reset --hard", True),
        ("git reset --hard other", True),
        ("git reset -q other", False),
        ("git stash", True),
        ("git stash push -q -- a.py", True),
        ("git stash -u", True),
        ("git stash -a", True),
        ("git stash list", False),
        ("git stash pop", True),
        ("git stash apply stash@{0}", True),
        ("git stash apply 0", True),
        ("git clean -f", True),
        ("git clean -fd", True),
        ("git clean -fdx", True),
        ("git clean -fX", True),
        ("git clean -n", False),
        ("git rm -q b.py", True),
        ("git rm -q -r src", True),
        ("git rm -q --cached b.py", False),
        ("git mv b.py c.py", True),
        ("git mv b.py src", True),
        ("git merge -q other", True),
        ("git rebase -q --autostash other", True),
        ("git cherry-pick other", True),
        ("git checkout -q -f other && git revert --no-edit HEAD", True),
        ("git diff other HEAD -- b.py > p; git apply -R p", True),
        ("git diff HEAD other -- b.py | git apply", True),
        ("git undo a.py", True),
        ("git zap", True),
        ("git -c alias.q='checkout --' q a.py", True),
        ("git --work-tree=. --git-dir=.git checkout -- a.py", True),
        ("GIT_WORK_TREE=. GIT_DIR=.git git checkout -- a.py", True),
        ("git add -A", False),
        ("git commit -q -a -m x", False),
        ("git diff --output=new.py", True),
        ("git branch x; git tag y; git config a.b c", False),
    ],
)
def test_what_git_would_change(text: str, changes: bool, template: Path, tmp_path: Path) -> None:
    """Git is asked which files its commands change."""
    root = Path(shutil.copytree(template, tmp_path / "root", symlinks=True))
    git(root, "status")  # the files are others than those that git knows
    before = snapshot(root)
    unpredicted, line = missing(text, root, tmp_path)
    assert bool(before != snapshot(root)) is changes, "the case is a real one"
    unread = "| git apply" in text or "git revert" in text or "> p;" in text  # what the line makes first
    assert not unpredicted or (unread and line.effects.unknown)
    assert bool(line.writes) is changes or unread


NAMES = """
a.py|b.py|'c d.txt'|src/e.py|lib/h.py|new.py|src/new|*.py|src/*|{a,b}.py|~/settings|"$PWD/a.py"|$v|"$v"
link/e.py|../root/a.py|./b.py|src
"""
names = st.sampled_from(NAMES.strip().replace("\n", "|").split("|"))
folders = st.sampled_from(["src", "lib", "src/deep", "..", ".", "missing", "link", "-", "made", "$PWD/lib"])
simple = st.one_of(
    st.builds("echo x > {}".format, names),
    st.builds("rm -rf {}".format, names),
    st.builds("cp -r {} {}".format, names, names),
    st.builds("mv {} {}".format, names, names),
    st.builds("sed -i s/old/new/ {}".format, names),
    st.builds("echo y | tee -a {} {}".format, names, names),
    st.builds("touch {}".format, names),
    st.builds("ln -sf {} {}".format, names, names),
    st.builds("cd {}".format, folders),
    st.builds("mkdir -p {}".format, folders),
    st.builds("v={}".format, names),
    st.just("exit"),
    st.just("true"),
    st.just("false"),
)
lines = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.builds("{} && {}".format, inner, inner),
        st.builds("{} || {}".format, inner, inner),
        st.builds("{}; {}".format, inner, inner),
        st.builds("{}\n{}".format, inner, inner),
        st.builds("( {} )".format, inner),
        st.builds("{{ {}; }}".format, inner),
        st.builds("{{ {}; }} > {}".format, inner, names),
        st.builds("{{ {}; }} | {{ {}; }}".format, inner, inner),
        st.builds("if {}; then {}; else {}; fi".format, inner, inner, inner),
        st.builds("for v in {} {}; do {}; done".format, names, names, inner),
        st.builds("f() {{ {}; }}; f; f".format, inner),
        st.builds("! {{ {}; }}".format, inner),
        st.builds("bash -c {}".format, st.builds(lambda text: "'" + text.replace("'", "'\\''") + "'", inner)),
        st.builds('x="$({})"; {}'.format, inner, inner),
    ),
    max_leaves=6,
)


@given(lines)
@settings(
    max_examples=20_000 if SOAK else 100,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_composed_lines_are_predicted(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """A composed line changes nothing but what was predicted, or something in it is unknown."""
    folder = tmp_path_factory.mktemp("line")
    unpredicted, line = missing(text, sandbox(folder), folder)
    assert not unpredicted or line.effects.unknown, (text, unpredicted, line.writes)

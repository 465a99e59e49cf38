"""Tables of programs that write the files they are given."""

from collections.abc import Mapping


def _rows(text: str) -> Mapping[str, tuple[str, ...]]:
    """Return the rest of each line by its first word."""
    return {words[0]: tuple(words[1:]) for line in text.splitlines() if (words := line.split())}


REWRITING_ALWAYS = frozenset(
    [
        "black",
        "isort",
        "pyupgrade",
        "rustfmt",
        "astyle",
        "taplo",
        "dprint",
        "dos2unix",
        "unix2dos",
        "mac2unix",
        "rufo",
        "php-cs-fixer",
        "phpcbf",
        "swiftformat",
        "stylua",
        "terraform",
        "nixfmt",
        "alejandra",
        "mdformat",
        "fprettify",
        "zigfmt",
        "buildifier",
        "sqlfluff",
        "dasel",
        "gzip",
        "gunzip",
        "bzip2",
        "bunzip2",
        "xz",
        "unxz",
        "zstd",
        "recode",
        "sd",
        "rpl",
        "rename",
        "prename",
        "codemod",
    ]
)
"""Programs that rewrite the files they are given."""
REWRITING = _rows(
    """
    autopep8 -i --in-place
    yapf -i --in-place
    autoflake -i --in-place
    docformatter -i --in-place
    djlint --reformat
    prettier -w --write
    eslint --fix
    standard --fix
    xo --fix
    stylelint --fix
    tslint --fix
    oxlint --fix
    js-beautify -r --replace
    gofmt -w
    goimports -w
    gofumpt -w
    golines -w
    clang-format -i
    clang-tidy --fix -fix
    uncrustify --replace
    shfmt -w --write
    shellharden --replace
    markdownlint --fix -f
    rubocop -a -A --autocorrect --autocorrect-all
    standardrb --fix
    ktlint -F --format
    google-java-format -i --replace
    swift-format -i --in-place
    cmake-format -i --in-place
    ormolu -i --mode
    fourmolu -i --mode
    yq -i --inplace
    jsonnetfmt -i --in-place
    elm-format --yes
    biome --write --fix --apply --apply-unsafe
    ruff --fix --fix-only --unsafe-fixes
    2to3 -w --write
    fixjson -w --write
    """
)
"""Programs that rewrite their files with one of these options."""
CHECK_ONLY = frozenset(
    ("--check", "--check-only", "--diff", "-d", "--dry-run", "--list-different", "-l", "-c")
)
"""Options with which a formatter changes nothing."""
SUBCOMMANDS = _rows(
    """
    ruff format
    cargo fmt fix
    go fmt fix
    dart format fix
    deno fmt
    mix format
    terraform fmt
    zig fmt
    taplo fmt format
    dprint fmt
    biome format check lint
    php-cs-fixer fix
    sqlfluff fix format
    dotnet format
    """
)
"""Subcommands that rewrite the files after them; without files, those of the whole project."""
OUTPUT_OPTIONS = _rows(
    """
    curl -o --output
    wget -O --output-document
    gcc -o
    g++ -o
    cc -o
    clang -o
    clang++ -o
    rustc -o
    tsc --outFile
    pandoc -o --output
    iconv -o --output
    xmllint -o --output
    protoc -o
    esbuild --outfile
    pip-compile -o --output-file
    openssl --out
    gpg -o --output
    dot -o
    tree -o
    """
)
"""Programs that write the file an option names, and maybe more."""
EDITORS = frozenset(("vi", "vim", "nvim", "nano", "emacs", "ed", "ex", "pico", "micro", "sponge"))

"""Command ``softsearch completion``: the script that completes all commands in bash."""

from collections.abc import Sequence

from softsearch.commands import every_command
from softsearch.runtime.cli import parser_of

_SCRIPTS = ("train", "evaluate", "export")  # scripts in src
_BASH = """\
_softsearch_lab() {  # WORD COMMAND...: Hydra's, for key=value
    local word=$1 line=${COMP_LINE#*"$2"}
    shift
    (($# < 2)) || line=${line#*"$2"}
    COMPREPLY=($(compgen -W "$(COMP_LINE="softsearch $line" "$@" -sc query=bash 2> /dev/null)" -- "$word"))
    [[ ${COMPREPLY[0]} != *[=.] ]] || compopt -o nospace
}
_softsearch() {
    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words=
    if ((COMP_CWORD < 2)); then
        words='@COMMANDS'
    else
        case $command in
@CASES            @LAB) _softsearch_lab "$word" "$1" "$command"; return ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}
_softsearch_python() {  # python src/COMMAND.py
    [[ ${COMP_WORDS[1]} =~ ^(.*/)?src/(@SCRIPTS)\\.py$ ]] && ((COMP_CWORD > 1)) || return
    _softsearch_lab "${COMP_WORDS[COMP_CWORD]}" "$1" "${COMP_WORDS[1]}"
}
COMP_WORDBREAKS=${COMP_WORDBREAKS//=}
complete -o default -F _softsearch softsearch
complete -o default -F _softsearch_python python python3
"""


def completion() -> None:
    """Prints the script."""
    every = list(every_command())
    hydra = "|".join(command.name for command in every if command.takes == "key=value")
    flags: dict[str, Sequence[str]] = {c.name: parser_of(c).option_names() for c in every if c.takes != "key=value"}
    cases = (f"            {name}) words='{' '.join(options)}' ;;\n" for name, options in flags.items())
    names = " ".join(dict.fromkeys(command.name for command in every))
    script = _BASH.replace("@COMMANDS", names).replace("@LAB", hydra).replace("@SCRIPTS", "|".join(_SCRIPTS))
    print(script.replace("@CASES", "".join(cases)), end="")

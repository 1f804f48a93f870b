"""The lab's commands in one line each, and the script that completes all commands in bash."""

from collections.abc import Mapping, Sequence

LAB = {  # command -> what it does
    "train": "Trains a model, tests its best checkpoint, and keeps everything in a run folder",
    "prepare": "Prepares the data of a training, which then finds them in the cache",
    "count": "Counts an n-gram language model, for fusion and reranking",
    "evaluate": "Translates a test set, scores one or several systems, and writes a report",
    "score": "Writes the log probabilities that models give to translations",
    "average": "Averages checkpoints of a run",
    "export": "Exports a checkpoint for hosts without PyTorch",
    "dictionary": "Makes a dictionary from the attention of a model, for unknown words",
    "tune": "Finds the weights of an ensemble, a reranker or a language model, and options of the search",
    "sweep": "Searches options of training with Optuna",
    "compare": "Compares runs, evaluations and sweeps in a table and pictures",
    "reproduce": "Trains and measures what papers claim, and says whether it holds",
    "history": "Trains every architecture that translates text, and writes one page that translates with all of them",
    "cache": "Lists, measures and clears what trainings have prepared and downloaded",
    "doctor": "Prints versions, devices, memory, and what is missing for which command",
    "demo": "Trains, evaluates, exports and translates on a generated corpus, in two minutes",
    "import": "Makes a run of a model that another program trained",
    "new": "Begins a package with parts of your own",
    "plugins": "Lists what installed packages add",
}
_SCRIPTS = ("train", "evaluate", "export")  # of src
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


def bash_completion(options: Mapping[str, Sequence[str]]) -> str:
    """The script; ``options`` are the flags of the runtime's commands."""
    cases = (f"            {name}) words='{' '.join(flags)}' ;;\n" for name, flags in options.items())
    script = _BASH.replace("@COMMANDS", " ".join([*options, *LAB])).replace("@LAB", "|".join(LAB))
    return script.replace("@SCRIPTS", "|".join(_SCRIPTS)).replace("@CASES", "".join(cases))

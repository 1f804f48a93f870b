"""Checks of a typed command line, and Hydra's errors with the nearest names."""

import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, Sweep
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import OmegaConf

from softsearch.app.config.composition import CONFIGS, composed, config_loader, option_key, quoted
from softsearch.app.config.options import Part, options_of
from softsearch.app.config.shorthands import hydras_parser, names_of_jobs, shell_command
from softsearch.app.config.validation import expected_section, flatten, is_section, nearest
from softsearch.commands import CORE
from softsearch.errors import ConfigError, SoftsearchError
from softsearch.files import MANIFEST
from softsearch.process import explained, how_to_install
from softsearch.ranges import fits

_EXTRAS = {"joblib": "sweep", "submitit_slurm": "sweep"}  # launcher -> pip extra; the pins of ray conflict with ours
_NESTED = ("hydra/launcher", *(p.relative_to(CONFIGS).as_posix() for p in CONFIGS.glob("*/*") if p.is_dir()))
_FLAGS = ("--help", "--multirun", "--config-dir", "--cfg", "--resolve")  # the ones that users type
_ONE_CHOICE = {
    field.name
    for command in CORE.values()
    if command.takes == "key=value"
    for field in fields(options_of(command.name))
    if field.type is Part
}


@dataclass(frozen=True)
class CommandLine:
    """A command and its words."""

    command: str
    words: Sequence[str] = ()
    is_script: bool = False  # typed as python src/COMMAND.py

    @property
    def program(self) -> str:
        """The command as it is typed."""
        return f"python src/{self.command}.py" if self.is_script else f"softsearch {self.command}"

    def asks_for_help(self) -> bool:
        """Tells whether ``--help`` or ``-h`` is among the words."""
        return not {"--help", "-h"}.isdisjoint(self.words)

    def overrides(self) -> list[str]:
        """Returns the words that are neither flags nor values of flags."""
        return [*hydras_parser().parse_known_args(self.words)[0].overrides]

    def check(self) -> list[str]:
        """Refuses words to which Hydra would reply with its usage or a traceback; returns further words for Hydra.

        Raises:
            ConfigError: there is no such option, a group has no such value, or a key has several values outside a
                sweep.
        """
        usage = io.StringIO()
        try:
            with redirect_stderr(usage):
                typed, unknown = hydras_parser().parse_known_args(self.words)
        except SystemExit as end:
            if not end.code:
                raise
            raise ConfigError(usage.getvalue().strip().splitlines()[-1].partition("error: ")[2]) from None
        if sum(bool(getattr(typed, mode)) for mode in ("run", "multirun", "cfg", "info", "shell_completion")) > 1:
            raise ConfigError("only one of --run, --multirun, --cfg, --info and --shell-completion can be given")
        if unknown:
            raise ConfigError(self._no_flag(unknown[0]))
        if typed.config_name or typed.config_path:
            raise ConfigError(
                "each command has its own config, so --config-name and --config-path have no effect; put yours into "
                f"softsearch_configs/experiment and write experiment={Path(typed.config_name or 'NAME').stem}"
            )
        overrides = OverridesParser.create().parse_overrides(typed.overrides)
        is_sweep = typed.multirun or any(o.key_or_group == "hydra.mode" for o in overrides)
        for override in overrides:
            key, value = override.key_or_group, override.value()
            if not key:
                raise ConfigError(f"{override.input_line!r} has no key; write key=value")
            if isinstance(value, Sweep) and not is_sweep:
                raise self._several_values(override, value)
            if (override.is_add() or override.is_force_add()) and override.package is None:
                self._check_added_group(key, override)
            several = isinstance(value, list) and key not in _ONE_CHOICE
            if (CONFIGS / key).is_dir() and not (override.is_delete() or several or isinstance(value, str | Sweep)):
                raise self.no_choice(key, value)
        return names_of_jobs(overrides) if is_sweep else []

    def _check_added_group(self, group: str, override: Override) -> None:
        if (CONFIGS / group).is_dir() and "/" not in group and group in self._groups():
            word = str(override.input_line)
            raise ConfigError(f"{word}: {group} has a choice already; write {shell_command([word.lstrip('+')])}")

    def no_choice(self, group: str, value: object) -> ConfigError:
        """Returns the error for a config group whose value is not the name of a choice."""
        typed = "null" if value is None else repr(value)
        sweep = f", or -m {group}=NAME,NAME for one run each" if isinstance(value, list) else ""
        choices = ", ".join(self.choices(group))
        return ConfigError(f"{group} is {typed}, expected one of {choices}; set {group}=NAME{sweep}")

    def choices(self, group: str) -> list[str]:
        """Returns the choices of a config group in all folders that Hydra searches."""
        with config_loader() as loader:
            return loader.get_group_options(group, config_name=self.command, overrides=self.search_path())

    def search_path(self) -> list[str]:
        """Returns ``--config-dir`` and ``hydra.searchpath`` as one option, for other configs than the command's."""
        typed = hydras_parser().parse_known_args(self.words)[0]
        sources = [f"file://{Path(typed.config_dir).absolute()}"] if typed.config_dir else []
        paths = [word for word in typed.overrides if word.startswith("hydra.searchpath=")]
        for override in OverridesParser.create().parse_overrides(paths):
            sources += cast(list[str], override.value())
        return [f"hydra.searchpath={json.dumps(sources)}"] if sources else []

    def explain(self, error: Exception) -> SoftsearchError:
        """Converts an error into a one-line error for users; Hydra's errors all mean wrong usage."""
        if isinstance(error, SoftsearchError):
            return error
        if isinstance(error, OSError) and not isinstance(error, HydraException):
            return explained(error)
        return ConfigError(self._hydras(error))

    def with_origin(self, error: ConfigError) -> ConfigError:
        """Returns the error; if it is about an option that an experiment or a recipe sets, it says so."""
        experiment = next((word for word in self.words if word.startswith("experiment=")), None)
        for key, group in re.findall(r"^\s*((\w+)[\w.]*) is not an option of", str(error), re.MULTILINE):
            choice = next((word for word in self.words if word.startswith(f"{group}=")), None)
            is_typed = any(f"{option_key(word)}.".startswith(f"{key}.") for word in self.words)
            if choice and not is_typed and experiment:
                return ConfigError(f"{error}; {experiment} sets it for another {group} than {choice}, leave one out")
            if choice and not is_typed and group != "model":
                return ConfigError(f"{error}; the model's recipe may set it, ~{key} leaves it out")
        return error

    def _hydras(self, error: Exception) -> str:
        """Explains an error of Hydra, with the nearest key or choice, or the missing plugin."""
        message = str(error).strip()
        if isinstance(error, OverrideParseException):
            return self._unreadable(error.override or "", message.splitlines()[0])
        if key := re.search(r"Could not override '([^']+)'", message):
            return self._no_key(key[1], str(getattr(error.__cause__, "full_key", key[1])))
        if typed := re.search(r"Error merging override \+*(\w+=.*)", message):
            (override,) = OverridesParser.create().parse_overrides([typed[1]])
            name, value = override.key_or_group, override.value()
            section: Any = get_type_hints(options_of(self.command)).get(name)
            if is_section(section):
                return f"{name} is {value}, {expected_section(name, section, value)}"
        if isinstance(error, MissingConfigException) and "/" in (missing := error.missing_cfg_file or ""):
            groups = (group for group in (*self._groups(), *_NESTED) if missing.startswith(f"{group}/"))
            group = max(groups, key=len, default=missing.rpartition("/")[0])
            name = missing.removeprefix(f"{group}/")
            if group == "hydra/launcher":
                advice = how_to_install(_EXTRAS[name]) if name in _EXTRAS else f"pip install hydra-{name}-launcher"
                return f"launcher={name} needs a plugin that is not installed: {advice}"
            return f"there is no {group}={name}; {self._choice_meant(group, name, error.options or ())}"
        return " ".join(line.strip() for line in message.splitlines() if line.strip())

    def _unreadable(self, word: str, reason: str) -> str:
        """Explains that a word is not key=value, or that Hydra cannot read its value."""
        key, equals, value = word.partition("=")
        at = [*self.words].index(word) if word in self.words else len(self.words)
        before, rest = self.words[at - 1] if at else "", [*self.words[at + 1 :]]
        if not equals:
            return f"{word!r} is not key=value; {self._key_and_value(word, before, rest)}"
        if re.search(r"\s[+~]*[\w./@]+=", value):
            return f"{word!r} has several options in one word; remove the quotes around them"
        words = [value]
        while rest and sum(Counter("".join(words))[c] for c in "[{(") > sum(Counter("".join(words))[c] for c in "]})"):
            words.append(rest.pop(0))
        if value.startswith(("[", "(")):
            items = [item.strip("'\" ") for item in " ".join(words).strip("[]() ").split(",")]
            meant = f"[{','.join(quoted(item.strip()) for item in items)}]"
        else:
            meant = quoted(value.rstrip(","))
        reason = reason.partition(" expecting ")[0]
        return f"{word!r} cannot be read ({reason}); write {shell_command([f'{key}={meant}'])}"

    def _key_and_value(self, word: str, before: str, rest: Sequence[str]) -> str:
        """Says what to write for a word without =, given the words around it."""
        if rest and rest[0].startswith("="):
            value = rest[0][1:] or "".join(rest[1:2])
            return f"write {shell_command([f'{word}={value}'])} without spaces"
        if groups := [group for group in self._groups() if (CONFIGS / group / f"{word}.yaml").is_file()]:
            return f"write {' or '.join(f'{group}={word}' for group in groups)}"
        if word in self._groups():
            return f"write {word}=NAME, one of {', '.join(self.choices(word))}"
        if word in self._keys():
            return f"write {word}={'RUN' if word == 'init' else self._example(word)}"
        if self.command in ("train", "prepare", "count") and ("/" in word or Path(word).exists()):
            return self._of_path(word, rest)
        whole = shell_command([f"{before} {word}"]) if "=" in before else ""
        return (
            f"write {whole} if it belongs to the previous word; " if whole else ""
        ) + f"{self.program} --help lists the keys"

    def _example(self, key: str) -> str:
        """Returns a value that an option of the command takes."""
        hint = get_type_hints(options_of(self.command)).get(key)
        names = [name for each in (hint, *get_args(hint)) if get_origin(each) is Literal for name in get_args(each)]
        return str(names[0]) if names else "true" if fits(True, hint) else "VALUE"

    def _of_path(self, word: str, rest: Sequence[str]) -> str:
        """Says what to write for a path without a key, and for a second file after it."""
        from softsearch.data.corpora.rows import is_table

        path = Path(word)
        if not path.exists():
            return f"there is no file {word} either; write data.train='[FILE.en,FILE.de]' for text, or init=RUN"
        if path.suffix in (".yaml", ".yml"):
            begin = "has # @package _global_ as its first line"
            return f"write experiment={path.stem}, when the file is in softsearch_configs/experiment and {begin}"
        if (path / MANIFEST).is_file():
            return "a bundle cannot be trained further; write init=RUN, the run that it was exported from"
        if path.is_dir() or path.suffix == ".ckpt":
            return f"write init={word} to start from a trained run, or data.train='[FILE.en,FILE.de]' for your own text"
        if is_table(word):
            return f"write {shell_command([f'data.train={word}', 'data.src=1', 'data.tgt=2'])}"
        other = next((after for after in rest[:1] if "=" not in after and Path(after).is_file()), "TRANSLATIONS")
        return f"write {shell_command([f'data.train=[{quoted(word)},{quoted(other)}]'])}"

    def _several_values(self, override: Override, value: Sweep) -> ConfigError:
        """Returns the error for a key with several values, but without ``-m``."""
        word = str(override.input_line)
        key, _, values = word.partition("=")
        as_list = ""
        if isinstance(value, ChoiceSweep) and value.simple_form and key not in _ONE_CHOICE:
            as_list = f"{shell_command([f'{key}=[{values}]'])} for a list, or "
        return ConfigError(
            f"{word} has several values; write {as_list}{self.program} -m {shell_command([word])} for one run each"
        )

    def _choice_meant(self, group: str, name: str, options: Sequence[str]) -> str:
        if group == "data" and ("/" in name or Path(name).suffix or Path(name).exists()):
            return f"data is the kind of corpus; {self._of_path(name, ())}"
        if others := [
            f"{other}={name}"
            for other in self._groups()
            if other != "noise" and (CONFIGS / other / f"{name}.yaml").is_file()
        ]:
            return f"write {' or '.join(others)}"
        from softsearch.suggestions import CHOICES  # only a mistake needs it

        return nearest(name, options, CHOICES)

    def _groups(self) -> list[str]:
        """Returns the command's config groups, those of whole runs first; a recipe comes with its model."""
        choices = composed(self.command, *self.search_path(), with_hydra=True).hydra.runtime.choices
        return sorted((g for g in choices if "/" not in g and g != "recipe"), key=lambda group: group != "experiment")

    def _no_flag(self, flag: str) -> str:
        name, _, value = flag.partition("=")
        after = [x for x in self.words[self.words.index(flag) + 1 :][:1] if not x.startswith("-") and "=" not in x]
        key, keys = name.lstrip("-").replace("-", "_"), self._keys()
        from softsearch.suggestions import similar  # only a mistake needs it

        if meant := similar(name, _FLAGS):
            return f"there is no option {name}; did you mean {meant[0]}?"
        advice = f"write {key}={value or ''.join(after) or 'VALUE'}" if key in keys else nearest(key, keys)
        return f"there is no option {name}, because options are written as key=value; {advice}"

    def _no_key(self, key: str, missing: str) -> str:
        """Explains that a key, or the key ``missing`` within its value, is not in the config."""
        from softsearch.suggestions import OPTIONS  # only a mistake needs it

        keys, group = self._keys(), key.partition(".")[0]
        if missing.startswith(f"{key}."):
            replace = f"to replace the section, write ~{key} '+{key}={{...}}'"
            return f"there is no config key {missing!r}, and {key}={{...}} changes only keys that exist; {replace}"
        if (CONFIGS / key).is_dir() and "/" in key:
            whole = key.rpartition("/")[0]
            typed = next((word for word in self.words if word.startswith(f"{whole}=")), whole)
            return f"{key} chooses a part that {typed} does not have; remove it, or set another {whole}"
        if group != key and group in keys and not any(other.startswith(f"{group}.") for other in keys):
            return f"there is no {key} while {group} is null; add {group}=NAME, one of {', '.join(self.choices(group))}"
        value = next((word.partition("=")[2] for word in self.words if option_key(word) == key), "")
        if "overrides" in keys and group in CommandLine("train")._keys():
            overrides = f"overrides=[{quoted(f'{key}={value}')}]"
            return f"{key} is an option of train; write {shell_command([overrides])}"
        if key.rpartition(".")[2] in ("name", "type", "kind") and key.rpartition(".")[0] in self._groups():
            return f"there is no config key {key!r}; write {key.rpartition('.')[0]}={value}"
        if group not in keys and group in CommandLine("train")._keys():
            has = ", ".join(name for name in keys if "." not in name)
            trained = "a trained one is ckpt=RUN; " if key == "model" and "ckpt" in keys else ""
            return (
                f"{key} is an option of train, and a checkpoint keeps its own value; {trained}{self.command} has {has}"
            )
        with_value = f"{key}={'false' if value.lower() in ('0', 'no', 'off') else value}".lower()
        return f"there is no config key {key!r}; {nearest(with_value if with_value in OPTIONS else key, keys)}"

    def _keys(self) -> list[str]:
        """Returns the keys of the config with the typed choices, as far as these can be composed."""
        path = self.search_path()
        config = composed(self.command, *path, with_hydra=True)
        groups = [group for group in config.hydra.runtime.choices if not group.startswith("hydra/")]
        with suppress(HydraException):
            config = composed(self.command, *path, *(w for w in self.words if w.partition("=")[0] in groups))
        keys = (key for key, _ in flatten(OmegaConf.to_container(config)) if not f"{key}.".startswith("hydra."))
        return [*dict.fromkeys([*keys, *groups, "hydra.run.dir"])]

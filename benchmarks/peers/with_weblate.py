"""Asks a running server through Weblate's own LibreTranslate machinery, and checks what comes back.

Run with the Python of an environment that has Weblate and psycopg, beside ``softsearch serve BUNDLE``:

    WEBLATE/bin/python benchmarks/peers/with_weblate.py http://127.0.0.1:8000/ SOURCE TARGET [FILE]

FILE has a line for each message: Weblate's flags of its unit, a tab, and the text; by default a few of each kind. Every
message must come back with the placeholders that Weblate took out of it, each once; the exit code is 1 if one does not.
"""

import os
import sys
from collections import Counter
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType, SimpleNamespace

MESSAGES = """\
c-format\tCopy %s?
c-format\t%d file copied
c-format\t%d files copied
python-format\tFile %(name)s cannot be closed.
python-brace-format\tFile {name} cannot be closed.
xml-text\tOpen <b>all</b> files
java-format\tDelete %1$s in %2$s
\tDelete file
\t_Page
"""


def settings(folder: Path) -> ModuleType:
    """Weblate's own settings for tests, without servers."""
    os.environ["CI_BASE_DIR"] = str(folder)
    module = ModuleType("weblate_settings")
    import weblate.settings_test as given

    module.__dict__.update({name: value for name, value in vars(given).items() if name.isupper()})
    module.DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
    module.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    return module


def main(url: str, source: str, target: str, *files: str) -> int:
    """Translates each message, prints it, and returns how many lost something."""
    sys.modules["weblate_settings"] = settings(Path(mkdtemp()))
    os.environ["DJANGO_SETTINGS_MODULE"] = "weblate_settings"
    import django

    django.setup()
    from weblate.checks.flags import Flags
    from weblate.lang.models import Language
    from weblate.machinery.libretranslate import LibreTranslateTranslation

    machine = LibreTranslateTranslation({"key": "", "url": url})
    if (source, target) == (machine.validate_source_language, machine.validate_target_language):
        machine.validate_settings()  # as when an administrator saves them
    component = SimpleNamespace(source_language=Language(code=source), project=SimpleNamespace(id=1))
    translation = SimpleNamespace(language=Language(code=target), component=component, log_debug=print)
    machine.account_usage = lambda project: None  # it counts in the database
    text = Path(files[0]).read_text(encoding="utf-8") if files else MESSAGES
    bad = 0
    for line in text.splitlines():
        flags, _, message = line.partition("\t")
        unit = SimpleNamespace(
            all_flags=Flags(flags),
            effective_source=message,
            get_effective_source_plurals=[message].copy,
            get_source_plurals=[message].copy,
            source_string=message,
            translation=translation,
            translation_parent_id=None,
            missing_source_snapshot=None,
        )
        sent, replaced = machine.cleanup_text(message, unit)
        (found,) = machine.search(unit, message, None)
        wanted = Counter(replaced.values())
        lost = {each for each, count in wanted.items() if found["text"].count(each) != count} | {"[X"} & {found["text"]}
        bad += bool(lost)
        print(f"{message!r} sent as {sent!r}: {found['text']!r}{f'  LOST {sorted(lost)}' if lost else ''}")
    print(f"{bad} of {len(text.splitlines())} messages lost something")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

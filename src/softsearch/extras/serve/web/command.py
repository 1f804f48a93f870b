"""``softsearch web``: writes a site."""

import argparse
import shlex
import sys
from pathlib import Path

from softsearch.extras.serve.web.about import read_about
from softsearch.extras.serve.web.site import write_site


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``softsearch web``."""
    parser.add_argument("bundles", type=Path, nargs="*", metavar="BUNDLE", help="a bundle exported with format=single")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("site"),
        metavar="FOLDER",
        help="folder of the site, by default site; an older site is replaced",
    )
    parser.add_argument("--examples", type=Path, metavar="FILE", help="sentences to try, one per line")
    parser.add_argument(
        "--about",
        type=Path,
        metavar="JSON",
        help="years, papers, equations and diagrams of the models; without BUNDLE: only check the file",
    )
    parser.set_defaults(parser=parser)


def web(arguments: argparse.Namespace) -> None:
    """Writes the site, and prints how to open it; or checks the file of ``--about``."""
    folder, about = arguments.out, arguments.about
    if about is not None and not arguments.bundles:
        print(f"{about}: OK, with {len(read_about(about).models)} models")
        return
    if not arguments.bundles:
        arguments.parser.error("write softsearch web BUNDLE")
    sizes = write_site(arguments.bundles, folder, arguments.examples, about)
    models = sum(size for file, size in sizes.items() if file.startswith("models/"))
    print(
        f"{folder}: {(sum(sizes.values()) - models) / 1e6:.1f} MB and {models / 1e6:.1f} MB of models; put it on any "
        f"static host, or open it here:\n  {Path(sys.executable).name} -m http.server --directory "
        f"{shlex.quote(str(folder))} 8000\nthen http://localhost:8000 (not the files: browsers refuse to run them)"
    )

"""Who may ask for work: clients with an API key (``--api-keys``), pages of known origins (``--cors``)."""

import hmac
import re
from collections.abc import Collection
from pathlib import Path

from fastapi import Request

from softsearch.errors import ConfigError
from softsearch.runtime.server.answers import RefusedError

_KEY = re.compile(r"[!-~]{16,200}")


def read_keys(path: Path) -> list[str]:
    """The keys in a file, one a line; blank lines and lines that begin with # are left out.

    Raises:
        ConfigError: the file cannot be read, a key is too short, too long or not plain ASCII, or there is none.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} cannot be read: {error}; expected a text file with an API key on each line"
        ) from error
    keys = []
    for number, line in enumerate(map(str.strip, lines), 1):
        if line and not line.startswith("#"):
            if not _KEY.fullmatch(line):  # the message must not quote it
                raise ConfigError(
                    f"{path}:{number} is no API key; expected 16 to 200 printable ASCII characters, no space"
                )
            keys.append(line)
    if not keys:
        raise ConfigError(f"{path} has no API key; put one on each line, or leave --api-keys out")
    return keys


def check_key(keys: Collection[str], request: Request, in_body: str | None = None) -> None:
    """Refuses a request without a valid key, if the server has keys.

    Args:
        keys: those that are valid.
        request: with the header ``Authorization: Bearer KEY``.
        in_body: LibreTranslate's ``api_key``.

    Raises:
        RefusedError: with status 401.
    """
    if not keys:
        return
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    given = in_body if in_body is not None else token if scheme.lower() == "bearer" else ""
    # Every key is compared, in constant time, so that the time tells nothing of any.
    if sum(hmac.compare_digest(given.strip().encode(), key.encode()) for key in keys) == 0:
        raise RefusedError(
            401, "no valid API key; send the header Authorization: Bearer KEY", {"WWW-Authenticate": "Bearer"}
        )


def check_origin(origins: Collection[str], request: Request) -> None:
    """Refuses a form from a page of another origin, which browsers send without asking the server (CORS) as for JSON.

    Args:
        origins: those of ``--cors``.
        request: of any content type.

    Raises:
        RefusedError: with status 403.
    """
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    known = {None, f"http://{host}", f"https://{host}", *origins}
    if origin not in known and not content_type.endswith("json"):
        raise RefusedError(403, "the form is from a page of another origin; send JSON, or let the page in with --cors")

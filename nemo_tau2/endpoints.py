"""Model endpoints as the command line names them: URL, model, sampling and a key from a file.

What is wrong with the flags is said before anything starts. The endpoint itself is `chat.Endpoint`.
"""

import json
from pathlib import Path

from pydantic import SecretStr

from nemo_tau2.chat import Endpoint
from nemo_tau2.errors import UserError

ModelFlags = tuple[str | None, str | None, str | None, str | None]
"""("scripted" or None, url, model, sampling JSON) as they come from the command line."""


def endpoint_of(role: str, flags: ModelFlags, key: str | None) -> Endpoint | None:
    """The endpoint that `--<role>-url`, `-model` and `-sampling` name; None for the scripted role.

    Raises UserError for flags that exclude each other, half an endpoint, or sampling that is no JSON.
    """
    scripted, url, model, sampling = flags
    if scripted and (url or model):
        raise UserError(f"--{role} scripted and --{role}-url exclude each other; give one")
    if not url and not model:
        return None
    if not (url and model):
        raise UserError(f"--{role}-url and --{role}-model go together; give both")
    if not url.startswith(("http://", "https://")):
        raise UserError(f"--{role}-url {url!r}: must begin with http:// or https:// and end in /v1")
    try:
        parsed = json.loads(sampling or "{}")
    except ValueError as error:
        raise UserError(f"--{role}-sampling is not JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise UserError(f"--{role}-sampling must be a JSON object")
    return Endpoint(url=url, model=model, sampling=parsed, api_key=SecretStr(key) if key else None)


def read_key(path: Path | None) -> str | None:
    """The first line of a key file; None without a file. Raises UserError where it cannot be read."""
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8").splitlines()[0].strip()
    except IndexError:
        raise UserError(f"--api-key-file {path}: the file is empty") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--api-key-file {path}: {error}") from None

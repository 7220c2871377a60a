"""Personas: who the customer is. A list in YAML, the package's own or a user's; drawn by seed."""

import random
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from nemo_tau2.errors import UserError
from nemo_tau2.simulation.scenario import Persona, parse_persona

BUILT_IN = Path(__file__).with_name("personas.yaml")


def load_personas(path: Path) -> list[Persona]:
    """The personas of a YAML list.

    Raises:
        UserError: the file is missing or no YAML list, a persona has an unknown key or a wrong
            value, or two have the same name (rows are told apart by it, in small letters).
    """
    personas = [
        parse_persona(entry, f"{path}: persona {number}")
        for number, entry in enumerate(read_list(path, "personas"), start=1)
    ]
    small = [persona.name.lower() for persona in personas]
    twice = next((p.name for p in personas if small.count(p.name.lower()) > 1), None)
    if twice is not None:
        raise UserError(f"{path}: two personas are called {twice!r}; give each its own name")
    return personas


@lru_cache(maxsize=1)
def built_in_personas() -> tuple[Persona, ...]:
    """The personas of this package."""
    return tuple(load_personas(BUILT_IN))


def draw(personas: list[Persona], count: int, seed: str) -> list[Persona]:
    """`count` different personas. Raises UserError where there are fewer."""
    if not 1 <= count <= len(personas):
        raise UserError(
            f"--personas {count}: give 1 to {len(personas)}, or a file with more of them"
        )
    return random.Random(seed).sample(personas, count)


def read_list(path: Path, what: str) -> list[Any]:
    """A non-empty YAML (or JSON) list. Raises UserError for anything else."""
    try:
        data = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not YAML ({str(error).splitlines()[0]})") from None
    if not isinstance(data, list) or not data:
        raise UserError(f"{path}: write a YAML list of {what}")
    return data

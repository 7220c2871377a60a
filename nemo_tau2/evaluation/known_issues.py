"""Tasks of the packaged τ²-bench files whose scoring is known upstream to be wrong.

Facts only, each with where it is reported. They hold for the packaged (uncorrected) task files, so a row
counts only where it carries the hash of one; corrected files have corrected tasks. The corrected gold
writes are kept as hashes: enough to see that a policy did exactly what the correction wants.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

PACKAGED = {
    "airline": "40d692b3fca780f46b56d48b447fd8db79a653f216667b8ed7c1a88380544532",
    "retail": "76e1fa649a359bef2d2fd30eae834b99d261d84e2e5d364856f6632fdf778dfd",
}
"""sha256 of the task files that the facts hold for."""
LAST_VARIANT = "modify_pending_order_items"
"""The tool that prices every new item by the last one."""
LAST_VARIANT_WHERE = "sierra-research/tau2-bench#317, #318, #325"
_V1 = "corrected in τ²-bench v1.0.0"


@dataclass(frozen=True, slots=True)
class Issue:
    """What is wrong with a task's gold actions.

    `corrected` is `digest` of the gold writes of the corrected task; `missing` a tool whose calls the
    gold actions leave out although the task asks for them; `dropped` one whose call the correction took
    out of the gold actions.
    """

    where: str
    what: str
    corrected: str = ""
    missing: str = ""
    dropped: str = ""


ISSUES = {
    ("airline", "2"): Issue(
        _V1, "the certificate was taken out of gold", dropped="send_certificate"
    ),
    ("airline", "7"): Issue(
        _V1, "gold has wrong: the cabin of the change", corrected="eac0902a9476b0ac"
    ),
    ("airline", "9"): Issue(
        _V1, "the cancellation of NQNU5R was taken out of gold", dropped="cancel_reservation"
    ),
    ("airline", "23"): Issue(
        _V1, "gold has wrong: the passengers of two bookings", corrected="932af6149d231134"
    ),
    ("airline", "27"): Issue(
        _V1, "the certificate was taken out of gold", dropped="send_certificate"
    ),
    ("airline", "29"): Issue(
        _V1,
        "gold has wrong: a change of flights where a new booking is due",
        corrected="20b0bd26ff3ec1c4",
    ),
    ("airline", "33"): Issue(
        _V1, "gold has wrong: the number of paid bags", corrected="c46850d4f6b9366c"
    ),
    ("airline", "35"): Issue(
        _V1, "gold has wrong: the passenger's date of birth", corrected="65dc86e0b0f358d7"
    ),
    ("airline", "37"): Issue(
        _V1, "the cancellation of NQNU5R was taken out of gold", dropped="cancel_reservation"
    ),
    ("airline", "38"): Issue(
        _V1, "the certificate was taken out of gold", dropped="send_certificate"
    ),
    ("airline", "44"): Issue(
        _V1, "the cancellation of S61CZX was taken out of gold", dropped="cancel_reservation"
    ),
    ("retail", "18"): Issue(
        _V1, "gold has wrong: the new item of the exchange", corrected="2a6bcb4843f7f72f"
    ),
    ("retail", "91"): Issue(
        _V1, "gold has wrong: the new item of the exchange", corrected="4b7d4b03b9954977"
    ),
    ("retail", "107"): Issue(
        _V1, "gold has wrong: the new item of the exchange", corrected="a899a8542eb00684"
    ),
    ("retail", "10"): Issue(
        "sierra-research/tau2-bench#316",
        "the gold actions leave out the returns the task asks for",
        missing="return_delivered_order_items",
    ),
}


def digest(writes: Iterable[tuple[str, Any]]) -> str:
    """A short hash of (tool, arguments) pairs in any order."""
    texts = sorted(json.dumps([name, arguments], sort_keys=True) for name, arguments in writes)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]

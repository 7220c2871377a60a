"""Identifying values in free text: ids, names, contacts, addresses, dates, amounts.

Reading only, and on purpose blind to what it is not sure of: a value that no pattern takes for certain
is no fact. A date or an amount counts as known where a person could have worked it out.
"""

import re
from dataclasses import dataclass
from itertools import islice

Value = str | float | tuple[int, int]

MAX_TEXT = 200_000
"""Characters of a text that are read."""
MAX_NUMBERS = 300
"""Numbers of the known text that sums are made of."""
NEAR_DAYS = 14
"""How far a date may be from a known one where the known text speaks of days before or after."""

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_STREET = (
    "Street|St|Avenue|Ave|Drive|Dr|Lane|Ln|Road|Rd|Boulevard|Blvd|Court|Way|Place|Circle|Terrace"
)
_SIMPLE = {
    "user_id": r"\b(?!credit_|gift_|debit_|certificate_)([a-z]{1,30}_[a-z]{1,30}_\d{3,5})\b",
    "email": r"\b([\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4})\b",
    "phone": r"(?<![\w-])(\(?\d{3}\)?[-. ]\d{3}[-. ]\d{4})(?![\w-])",
    "zip": r"\b(?i:zip)(?i:[ -]?code)?(?i: is|:| of)?[ :]*(\d{5})\b",
    "order_id": r"(?<!\w)#?(W\d{7})\b",
    "reservation_id": r"\b(?!HAT\d{3})(?=[A-Z]{0,5}\d)(?=\d{0,5}[A-Z])([A-Z0-9]{6})\b",
    "payment_id": r"\b((?:credit_card|gift_card|debit_card|paypal|certificate)_\d{3,})\b",
    "flight": r"\b(HAT\d{3})\b",
    "item_id": r"(?<![\d.])(\d{10})(?!\d|\.\d)",
    "customer_id": r"\b(C\d{4})\b",
    "line_id": r"\b(L\d{4})\b",
    "name": r"\b(?i:my name is|my name's|this is|i am|i'm) ([A-Z][a-z]{1,30} [A-Z][a-z]{1,30})\b",
    "address": rf"\b(\d{{1,5}} [A-Z][a-z]{{1,30}}(?: [A-Z][a-z]{{1,30}})?) (?:{_STREET})\b",
}
_PATTERNS = {kind: re.compile(pattern) for kind, pattern in _SIMPLE.items()}
_WITHOUT_DIGITS = {kind: _PATTERNS[kind] for kind in ("email", "name")}
_DIGIT = re.compile(r"\d")
_ISO = re.compile(r"\b(?:19|20)\d\d-(\d\d)-(\d\d)\b")
_MONTH_DAY = re.compile(rf"\b{_MONTH} (\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)", re.IGNORECASE)
_DAY_MONTH = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH}\b", re.IGNORECASE)
_SLASHED = re.compile(r"\b(\d{1,2})/(\d{1,2})/(?:19|20)\d\d\b")
_RELATIVE = re.compile(r"\b(days?|weeks?|tomorrow|yesterday|today|next|following|earlier|later)\b")
_AMOUNT = re.compile(r"\$ ?(\d[\d,]{0,12}(?:\.\d{1,6})?)")
_NUMBER = re.compile(r"(?<![\w.])\$?(\d[\d,]{0,12}(?:\.\d{1,6})?)")


@dataclass(frozen=True, slots=True)
class Fact:
    """A value of an identifying kind and the words it was found in."""

    kind: str
    value: Value
    words: str


def facts(text: str) -> list[Fact]:
    """The identifying values a text states, each once."""
    text = text[:MAX_TEXT]
    patterns = _PATTERNS if _DIGIT.search(text) else _WITHOUT_DIGITS
    found = [
        Fact(kind, match[1], match[0])
        for kind, pattern in patterns.items()
        for match in pattern.finditer(text)
    ]
    found += [Fact("date", day, words) for day, words in _dates(text)]
    found += [Fact("amount", _number(m[1]), m[0]) for m in _AMOUNT.finditer(text)]
    return list({(fact.kind, fact.value): fact for fact in found}.values())


class Known:
    """What can be known from some texts; `add` makes it know more.

    A text is only searched for what is asked about: most values are never asked about.
    """

    def __init__(self, *texts: str):
        self._texts: list[str] = []
        self._lower: list[str] = []
        self._dates: set[tuple[int, int]] = set()
        self._dates_read = 0
        self._numbers: set[float] = set()
        self._numbers_read = 0
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        text = text[:MAX_TEXT]
        self._texts.append(text)
        self._lower.append(text.lower())

    def states(self, fact: Fact) -> bool:
        """Whether the texts hold the value itself."""
        if fact.kind == "date":
            return fact.value in self._known_dates()
        if fact.kind == "amount":
            return fact.value in self._known_numbers()
        if fact.kind == "phone":
            digits = re.sub(r"\D", "", fact.value)
            return any(digits in _joined_digits(text) for text in self._lower)
        if fact.kind == "name":
            words = fact.value.lower().split()
            return all(any(word in text for text in self._lower) for word in words)
        return any(fact.value.lower() in text for text in self._lower)

    def allows(self, fact: Fact) -> bool:
        """Whether the value is there or could have been worked out from what is there."""
        if self.states(fact):
            return True
        if fact.kind == "date" and any(map(_RELATIVE.search, self._lower)):
            return any(_apart(fact.value, day) <= NEAR_DAYS for day in self._known_dates())
        return fact.kind == "amount" and self._is_sum(fact.value)

    def _known_dates(self) -> set[tuple[int, int]]:
        for text in self._texts[self._dates_read :]:
            self._dates |= {day for day, _ in _dates(text)}
        self._dates_read = len(self._texts)
        return self._dates

    def _known_numbers(self) -> set[float]:
        for text in self._texts[self._numbers_read :]:
            self._numbers |= {_number(match[1]) for match in _NUMBER.finditer(text)}
        self._numbers_read = len(self._texts)
        return self._numbers

    def _is_sum(self, amount: float) -> bool:
        """A sum, a difference or a small multiple of known numbers."""
        numbers = list(islice(sorted(self._known_numbers()), MAX_NUMBERS))
        cents = {round(100 * number) for number in numbers}
        wanted = round(100 * amount)

        def multiples(one: int) -> range:
            return range(2 * one, 9 * one + 1, one) if one else range(0)

        return any(
            wanted - one in cents or wanted + one in cents or wanted in multiples(one)
            for one in cents
        )


def _joined_digits(text: str) -> str:
    """The text with what stands between the digits of a phone number taken out."""
    return re.sub(r"(?<=\d)[-. ()]+(?=\d)|\((?=\d)", "", text)


def _dates(text: str) -> list[tuple[tuple[int, int], str]]:
    """((month, day), words) of every date in the text."""
    if not _DIGIT.search(text):
        return []
    found = [((int(m[1]), int(m[2])), m[0]) for m in _ISO.finditer(text)]
    lower = text.lower()
    if any(month in lower for month in _MONTHS):  # cheaper than the patterns that follow
        found += [((_month(m[1]), int(m[2])), m[0]) for m in _MONTH_DAY.finditer(text)]
        found += [((_month(m[2]), int(m[1])), m[0]) for m in _DAY_MONTH.finditer(text)]
    found += [((int(m[1]), int(m[2])), m[0]) for m in _SLASHED.finditer(text)]
    return [(day, words) for day, words in found if 1 <= day[0] <= 12 and 1 <= day[1] <= 31]


def _month(name: str) -> int:
    return _MONTHS.index(name[:3].lower()) + 1


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _apart(one: tuple[int, int], other: tuple[int, int]) -> int:
    """Days between two dates of one year, months taken as 31 days: near enough to be lenient."""
    return abs((one[0] - other[0]) * 31 + one[1] - other[1])

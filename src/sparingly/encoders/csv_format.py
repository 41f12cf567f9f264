"""How a CSV file is written: its character encoding, separator, quotes and decimal mark, found out or stated."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from sparingly.encoders.encoding_errors import EncodingError

SEPARATORS = (",", ";", "\t", "|")
SAMPLE = 100
"""Lines from which the separator and the quotes are found out."""
WIDEST = 1 << 16
"""Characters of them at most."""
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?|[+-]?\d{1,3}(\.\d+)?")


@dataclass(frozen=True)
class CsvFormat:
    """What is known about how a CSV file is written; None is to be found out.

    Attributes
    ----------
    encoding
        Of its characters, such as `utf-8` or `cp1252`.
    separator, quote
        Between two cells, and around one that contains the separator.
    decimal
        The decimal mark of its numbers, a point or a comma.
    """

    encoding: str | None = None
    separator: str | None = None
    quote: str | None = None
    decimal: str | None = None

    def __post_init__(self) -> None:
        for name in ("separator", "quote"):
            value = getattr(self, name)
            if value is not None and len(value) != 1:
                raise EncodingError(f"{name} is {value!r}: it must be one character")
        if self.decimal not in (None, ".", ","):
            raise EncodingError(f"decimal is {self.decimal!r}: it must be a point or a comma")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise EncodingError(f"there is no encoding {self.encoding!r}: try utf-8 or cp1252") from None

    def read(self, content: bytes) -> tuple[CsvFormat, str]:
        """The format of a file, everything but the decimal mark found out, and its text.

        >>> CsvFormat().read("größe;art\\n3,5;groß\\n".encode("cp1252"))
        (CsvFormat(encoding='cp1252', separator=';', quote='"', decimal=None), 'größe;art\\n3,5;groß\\n')
        """
        encoding = self.encoding or next((name for mark, name in _MARKS.items() if content.startswith(mark)), None)
        text = None
        for name in (encoding,) if encoding else ("utf-8", "cp1252", "latin-1"):
            try:
                text, encoding = content.decode(name), name
                break
            except UnicodeDecodeError as error:
                wrong = f"byte {error.start} is not {name}"
        if text is None:
            raise EncodingError(f"{wrong}: state another encoding (--encoding)")
        return replace(self.of_lines(text[:WIDEST].splitlines()[:SAMPLE]), encoding=encoding), text

    def of_lines(self, lines: Iterable[str]) -> CsvFormat:
        """The format with the separator and the quotes that fit these lines best.

        >>> CsvFormat().of_lines(["a|b", "'1|2'|3"])
        CsvFormat(encoding=None, separator='|', quote="'", decimal=None)
        """
        sample = [line for line in lines if line.strip()]
        quotes = (self.quote,) if self.quote else ('"', "'") if not any('"' in line for line in sample) else ('"',)
        separators = (self.separator,) if self.separator else SEPARATORS
        fits = {(s, q): _fit(sample, s, q) for s in separators for q in quotes}
        separator, quote = max(fits, key=lambda pair: fits[pair])
        return replace(self, separator=separator, quote=quote)

    def rows(self, lines: Iterable[str]) -> csv.DictReader[str]:
        """The rows of lines in this format, by the names in the first of them.

        >>> list(CsvFormat(separator=";").rows(["size; kind", "3,5; cat"]))
        [{'size': '3,5', 'kind': 'cat'}]
        """
        return csv.DictReader(
            lines, delimiter=self.separator or ",", quotechar=self.quote or '"', skipinitialspace=True
        )

    def columns(self, text: str) -> dict[str, list[str]]:
        """The cells of a whole file that are not empty, by column."""
        columns: dict[str, list[str]] = {}
        for row in self.rows(io.StringIO(text, newline="")):
            for key, value in row.items():
                if isinstance(value, str) and value.strip():
                    columns.setdefault(str(key).strip(), []).append(value)
        return columns

    def decimal_commas(self, text: str) -> set[str]:
        """The columns of a whole file whose numbers have a decimal comma.

        >>> CsvFormat(separator=";").decimal_commas("size;kind;when\\n3,5;cat;7\\n")
        {'size'}
        """
        if self.separator == ",":
            return set()
        found = self.columns(text)
        return {key for key, cells in found.items() if decimal_mark(cells, self.separator or ",") == ","}


def _fit(sample: list[str], separator: str, quote: str) -> tuple[bool, float, int]:
    """How well lines fall into cells: more than one, as many in each line, and then the more the better."""
    try:
        widths = [len(row) for row in csv.reader(io.StringIO("\n".join(sample)), delimiter=separator, quotechar=quote)]
    except csv.Error:
        return False, 0.0, 0
    first = widths[0] if widths else 0
    return first > 1, sum(width == first for width in widths) / max(1, len(widths)), first


def plain_number(text: str, decimal: str) -> str:
    """A number as Python writes it.

    >>> plain_number("1.234,5", ","), plain_number("1,234.5", ".")
    ('1234.5', '1234.5')
    """
    other = "," if decimal == "." else "."
    return text.strip().replace(other, "").replace(decimal, ".")


def decimal_mark(cells: Iterable[str], separator: str = ",") -> str | None:
    """The decimal mark of cells that are numbers but for a comma in some of them; None if they are anything else.

    Where cells are separated by commas, groups of three digits after a comma are thousands.

    >>> decimal_mark(["3,5", "1.200,25", "7"], ";"), decimal_mark(["1,200", "35"]), decimal_mark(["3,5", "x"])
    (',', '.', None)
    """
    found = [cell.strip() for cell in cells]
    if not any("," in cell for cell in found):
        return None
    if separator == "," and all(map(_THOUSANDS.fullmatch, found)):
        return "."
    return "," if all(map(_COMMA.fullmatch, found)) else None

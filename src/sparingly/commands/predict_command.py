"""`sparingly predict`: classes and probabilities from an exported model."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Annotated, Any

import typer


def predict(
    model: Annotated[Path, typer.Argument(help="A file of `sparingly agent export-model`.")],
    data: Annotated[str, typer.Option(help="CSV or JSON lines; - reads them in.")],
    out: Annotated[Path | None, typer.Option(help="Write to this file instead.")] = None,
    kind: Annotated[str | None, typer.Option("--format", help="csv or jsonl; otherwise the first line tells.")] = None,
    id: Annotated[str, typer.Option(help="The column or key that holds an id, written beside the prediction.")] = "id",
) -> None:
    """Predict with a model: a CSV line for each row, with the class of least expected cost and the probabilities."""
    from sparingly.commands.input_formats import batches, open_rows
    from sparingly.live.model.exported_model import load_model

    loaded = load_model(model)
    known = None if loaded.fields is None else set(loaded.fields)
    left_out: set[str] = set()
    id_name = None if known is not None and id in known else id
    with open_rows(data, kind, id_name) as rows:
        lines: list[list[Any]] = []
        for block in batches(rows, 1000):
            X = [_known_fields(row.features, known, left_out) for row in block]
            held = loaded.predict_proba(X).round(6).tolist()
            for row, label, shares in zip(block, loaded.predict(X), held, strict=True):
                lines.append([row.id, label, *shares])
    if left_out:
        names = ", ".join(sorted(left_out))
        typer.echo(f"sparingly: not among the model's fields, and left out: {names}", err=True)
    _write(out, ["id", "prediction", *map(str, loaded.classes)], lines)


def _known_fields(features: Any, known: set[str] | None, left_out: set[str]) -> Any:
    """A row without the columns that the model knows nothing of, which are noted."""
    if known is None or not isinstance(features, dict):
        return features
    left_out |= set(features) - known
    return {name: value for name, value in features.items() if name in known}


def _write(out: Path | None, header: list[str], lines: list[list[Any]]) -> None:
    skip = 0 if any(line[0] is not None for line in lines) else 1
    if out is None:
        csv.writer(sys.stdout, lineterminator="\n").writerows(line[skip:] for line in [header, *lines])
        return
    partial = out.with_name(out.name + ".partial")
    try:
        with partial.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(line[skip:] for line in [header, *lines])
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)
    typer.echo(f"{out}: {len(lines)} predictions")

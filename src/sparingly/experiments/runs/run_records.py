"""Records: one Parquet file a run, whole or not at all, and SQL over all of them.

A file has a row for each round; its metadata hold the settings, versions, F1 by labels, counts and the time spent.
Two runs of the same settings have the same content to the last bit; only `time` differs.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly import __version__
from sparingly.experiments.runs.experiment_settings import Run, SettingsError, Study

FORMAT = 1


@dataclass(frozen=True)
class Record:
    """What one run left.

    Attributes
    ----------
    run
        The settings.
    rounds
        By name, an array over the rounds: action, prediction, outcome, answer, cost, regret, width, gap; `why`, the
        sentence of the reason, and `why_NAME`, its numbers (not in records of an earlier release).
    f1
        Weighted F1 on the held-out set: rows of labels, round and score; the last row is the end of the stream.
    counts
        `[action, outcome]`: how often an action met an outcome.
    versions
        Of what the numbers depend on.
    time
        Seconds by phase; not part of the content.
    classes
        The names of the outcomes; none in records of an earlier release.
    experts
        For each expert with a name: price, whether gold, how often asked, its accuracy, and what was learned of it.
    """

    run: Run
    rounds: dict[str, NDArray[Any]]
    f1: list[tuple[int, int, float]]
    counts: list[list[int]]
    versions: dict[str, str]
    time: dict[str, float]
    classes: tuple[str, ...] = ()
    experts: list[dict[str, Any]] = field(default_factory=list)

    @property
    def regret(self) -> float:
        return float(self.rounds["regret"].sum())

    @property
    def queries(self) -> int:
        return sum(one["asked"] for one in self.experts) if self.experts else int(self.asked.sum())

    @property
    def asked(self) -> NDArray[np.bool_]:
        """In which rounds it asked."""
        found: NDArray[np.bool_] = self.rounds["action"] >= self.n_classes
        for expert in self.experts:
            found = found | self.rounds[f"asked_{expert['name']}"]
        return found

    @property
    def n_classes(self) -> int:
        return len(self.counts[0])

    @property
    def paid(self) -> NDArray[np.float64]:
        """What was paid for questions in each round."""
        found: NDArray[np.float64] = self.rounds.get("paid", np.where(self.asked, self.rounds["cost"], 0.0))
        return found

    def to_bytes(self) -> bytes:
        """The record as a Parquet file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        description = {
            "format": FORMAT,
            "settings": self.run.model_dump(mode="json", exclude={"player": {"label"}}),
            "versions": self.versions,
            "f1": self.f1,
            "counts": self.counts,
            "classes": self.classes,
            **({"experts": self.experts} if self.experts else {}),
        }
        metadata = {"sparingly": json.dumps(description, sort_keys=True), "time": json.dumps(self.time)}
        columns = {"round": np.arange(len(self.rounds["action"]), dtype=np.int32), **self.rounds}
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        sink = io.BytesIO()
        pq.write_table(table.replace_schema_metadata(metadata), sink, compression="zstd")
        return sink.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> Record:
        """The inverse of `to_bytes`."""
        import pyarrow.parquet as pq

        table = pq.read_table(io.BytesIO(content))
        description, time = (json.loads(table.schema.metadata[key]) for key in (b"sparingly", b"time"))
        rounds = {name: table[name].to_numpy() for name in table.column_names if name != "round"}
        f1 = [(int(labels), int(t), float(score)) for labels, t, score in description["f1"]]
        return cls(
            Run.model_validate(description["settings"]),
            rounds,
            f1,
            description["counts"],
            description["versions"],
            time,
            tuple(description.get("classes", ())),
            description.get("experts", []),
        )

    def row(self, run_id: str) -> dict[str, Any]:
        """The run in one row: what it was, and what came out."""
        task, counts = self.run.task, np.array(self.counts)
        announced = counts[: self.n_classes]
        row = {
            "run": run_id,
            "dataset": Path(task.dataset).stem,
            "strategy": self.run.player.strategy,
            "options": json.dumps(self.run.player.options, sort_keys=True),
            "preprocessing": task.preprocessing,
            "costs": "uniform" if task.costs is None else json.dumps(task.costs),
            "query_cost": task.query_cost,
            "horizon": task.horizon,
            "horizon_known": task.horizon_known,
            "order": task.order,
            "known": task.known,
            "data_hash": task.data_hash,
            "code_hash": self.run.player.code_hash,
            "seed": self.run.seed,
            "rounds": len(self.rounds["action"]),
            "regret": self.regret,
            "cost": float(self.rounds["cost"].sum()),
            "queries": self.queries,
            "paid": float(self.paid.sum()),
            "errors": int(announced.sum() - np.trace(announced)),
            "f1": self.f1[-1][2] if self.f1 else float("nan"),
            "seconds": self.time.get("total", float("nan")),
            "cpu_seconds": self.time.get("cpu", float("nan")),
        }
        if self.experts:
            row |= {"mistakes": float((self.rounds["cost"] - self.paid).sum()), "experts": json.dumps(self.experts)}
            row |= {f"asked {expert['name']}": expert["asked"] for expert in self.experts}
            row["decided"] = json.dumps(self.decided())
        if self.n_classes == 2:
            row |= {"TP": announced[0, 0], "FP": announced[0, 1], "FN": announced[1, 0], "TN": announced[1, 1]}
        return row

    def decided(self) -> dict[str, int]:
        """How many rounds each decided: the truth if it was asked, else the last expert who was asked, or nobody."""
        names = [expert["name"] for expert in sorted(self.experts, key=lambda one: (one["gold"], one["price"]))]
        last = np.full(len(self.rounds["action"]), -1)
        for place, name in enumerate(names):
            last[self.rounds[f"asked_{name}"]] = place
        return {"own model": int((last < 0).sum())} | {n: int((last == k).sum()) for k, n in enumerate(names)}

    def content_hash(self) -> str:
        """A sha256 of everything but the time spent."""
        timeless = replace(self, time={})
        return hashlib.sha256(timeless.to_bytes()).hexdigest()


@dataclass(frozen=True)
class KeptRun:
    """What a record is of, without its rounds."""

    run: Run
    rounds: int
    seconds: float


class Results:
    """A folder of records, of the studies they belong to, and of what failed."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def open(self) -> Results:
        """Make the folder, or check that this version may add to it."""
        mark = self.folder / "sparingly.json"
        ours = {"format": FORMAT, "version": __version__}
        if mark.is_file():
            theirs = json.loads(mark.read_text())
            if theirs != ours:
                raise SettingsError(
                    f"{self.folder} was made by version {theirs.get('version')} (format {theirs.get('format')}), "
                    f"this is version {__version__} (format {FORMAT}): choose another folder"
                )
            return self
        if self.folder.is_dir() and any(self.folder.iterdir()):
            raise SettingsError(f"{self.folder} is not empty and holds no results: choose another folder")
        for part in ("runs", "studies", "failures"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        write_whole(mark, json.dumps(ours).encode())
        return self

    def must_exist(self) -> Results:
        """For those who only read."""
        if not (self.folder / "sparingly.json").is_file():
            raise SettingsError(f"{self.folder} holds no results: `sparingly run` and `sparingly reproduce` make them")
        return self.open()

    def path(self, run_id: str) -> Path:
        return self.folder / "runs" / f"{run_id}.parquet"

    def has(self, run_id: str) -> bool:
        return self.path(run_id).is_file()

    def add(self, run_id: str, content: bytes) -> None:
        """Keep a run's record, and forget that it ever failed."""
        write_whole(self.path(run_id), content)
        self._failure(run_id).unlink(missing_ok=True)

    def read(self, run_id: str) -> Record:
        return Record.from_bytes(self.path(run_id).read_bytes())

    def kept(self) -> Iterator[KeptRun]:
        """What the records are of; quicker than reading them."""
        import pyarrow.parquet as pq

        for file in sorted((self.folder / "runs").glob("*.parquet")):
            metadata = pq.read_metadata(file)
            description, time = (json.loads(metadata.metadata[key]) for key in (b"sparingly", b"time"))
            run = Run.model_validate(description["settings"])
            yield KeptRun(run, metadata.num_rows, float(time.get("total", 0.0)))

    def add_failure(self, run_id: str, reason: str, details: str) -> None:
        write_whole(self._failure(run_id), json.dumps({"reason": reason, "details": details}, indent=1).encode())

    def failures(self) -> dict[str, str]:
        """Why runs failed, by id."""
        files = sorted((self.folder / "failures").glob("*.json"))
        return {file.stem: json.loads(file.read_text())["reason"] for file in files}

    def add_study(self, study: Study) -> None:
        write_whole(self.folder / "studies" / f"{study.name}.json", study.model_dump_json(indent=1).encode())

    def studies(self) -> Iterator[Study]:
        for file in sorted((self.folder / "studies").glob("*.json")):
            yield Study.model_validate_json(file.read_text())

    def sweep(self) -> None:
        """Remove what a killed process left half written."""
        for part in self.folder.rglob("*.part"):
            part.unlink(missing_ok=True)

    def query(self, sql: str) -> Any:
        """SQL over `runs` (one row a run), `rounds` (one row a round) and `f1`; gives a DuckDB relation."""
        import duckdb

        connection = duckdb.connect()
        runs, f1 = self.frames()
        connection.register("runs", runs)
        connection.register("f1", f1)
        pattern = str(self.folder / "runs" / "*.parquet").replace("'", "''")
        if len(runs):
            connection.execute(
                f"create view rounds as select parse_filename(filename, true) as run, * exclude (filename) "
                f"from read_parquet('{pattern}', filename=true, union_by_name=true)"
            )
        try:
            return connection.sql(sql)
        except duckdb.Error as error:
            raise SettingsError(f"the query failed: {str(error).splitlines()[0]}") from error

    def frames(self, ids: Iterable[str] | None = None) -> tuple[Any, Any]:
        """One row a run, and F1 by labels, as two pandas frames."""
        import pandas as pd

        files = sorted((self.folder / "runs").glob("*.parquet"))
        wanted = [file.stem for file in files] if ids is None else [run for run in ids if self.has(run)]
        rows: list[dict[str, Any]] = []
        scores: list[dict[str, Any]] = []
        for run_id in wanted:
            record = self.read(run_id)
            rows.append(record.row(run_id))
            scores.extend({"run": run_id, "labels": labels, "t": t, "f1": f1} for labels, t, f1 in record.f1)
        return pd.DataFrame(rows), pd.DataFrame(scores, columns=["run", "labels", "t", "f1"])

    def _failure(self, run_id: str) -> Path:
        return self.folder / "failures" / f"{run_id}.json"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it appears whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise

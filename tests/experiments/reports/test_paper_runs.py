"""Our runs beside the paper's: samples that are alike agree, others do not, and without the file the report says so."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from benchmarks import authors_streams, ineural, rivals_table

from sparingly import NeuralCBP, label_efficient
from sparingly.experiments.dataset import Dataset
from sparingly.experiments.datasets import load
from sparingly.experiments.reports.paper_runs import beside_the_paper, draw_all_beside, paper_runs
from sparingly.experiments.runs.experiment_settings import SettingsError
from sparingly.strategies.published.selective_sampling.ineural import INeural
from sparingly.strategies.published.selective_sampling.margin import Margin
from sparingly.strategies.published.selective_sampling.neuronal import Neuronal


@pytest.fixture
def runs() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        ("Q1", "adult", label, seed, 1000 + 50 * rng.normal(), int(rng.integers(2, 300)))
        for label in ("Neural-CBP", "Neuronal (official)")
        for seed in range(30)
    ]
    rows += [("Q1_app", "adult", "Neuronal (official)", s, 1500 + 50 * rng.normal(), 100) for s in range(30)]
    return pd.DataFrame(rows, columns=["table", "dataset", "label", "seed", "regret", "queries"])


def file_of(tmp_path, runs: pd.DataFrame, shift: float = 0.0):
    theirs = runs.rename(columns={"label": "strategy", "queries": "questions"})
    slower = theirs["table"].str.endswith("_app")
    theirs["strategy"] += np.where(slower, ", rate 0.0001", "")
    theirs["table"] = theirs["table"].str.removesuffix("_app")
    theirs.loc[theirs["strategy"] == "Neural-CBP", "regret"] += shift
    theirs.to_csv(tmp_path / "runs.csv", index=False)
    return tmp_path / "runs.csv"


def test_the_same_runs_agree_and_the_appendix_has_rows_of_its_own(tmp_path, runs):
    rows = beside_the_paper(runs, paper_runs(file_of(tmp_path, runs)))
    assert [(row.table, row.label) for row in rows] == [
        ("Q1", "Neural-CBP"),
        ("Q1", "Neuronal (official)"),
        ("Q1_app", "Neuronal (official)"),
    ]
    assert all(row.agrees for row in rows)
    assert all(row.apart[0] == 0 for row in rows)
    share = (runs[runs["label"] == "Neural-CBP"]["queries"] <= 20).mean()
    assert rows[0].stopped == (pytest.approx(share), pytest.approx(share))


def test_a_row_that_is_elsewhere_does_not_agree(tmp_path, runs):
    rows = beside_the_paper(runs, paper_runs(file_of(tmp_path, runs, shift=60.0)))
    assert [row.agrees for row in rows] == [False, True, True]
    assert rows[0].p_values[0] < 0.01 < rows[0].p_values[2]
    assert rows[0].apart[0] < -3
    told = rivals_table.agreement(runs.assign(earlier=runs["table"] == "Q1_app"), rows)[2:]
    assert told == [
        "| Q1 to Q3 | now | 2 | 1 | 30 to 30 |",
        "| Q1 to Q3 | earlier | 1 | 1 | 30 to 30 |",
        "| Q1 to Q3 | all, of 70 | 3 | 2 | 30 to 30 |",
    ]


def test_a_single_run_stands_beside_the_range_of_theirs(tmp_path, runs):
    theirs = paper_runs(file_of(tmp_path, runs))
    alone = runs[(runs["label"] == "Neuronal (official)") & (runs["table"] == "Q1_app")].head(1)
    (line,) = rivals_table.single_runs(pd.concat([runs[runs["table"] == "Q1"], alone]), theirs)[2:]
    known = theirs[theirs["table"] == "Q1_app"]["regret"]
    regret = f"{alone['regret'].iloc[0]:.0f} | {known.min():.0f} to {known.max():.0f}, {known.mean():.0f}"
    assert line == f"| Q1_app | adult | Neuronal (official) | {regret} | 100 | 100 to 100, 100 |"


def test_runs_that_are_missing_are_counted_with_what_they_take():
    labels = ["Neural-CBP"] * 5 + ["Neuronal (official)"] * 2
    runs = pd.DataFrame({"table": "Q3", "dataset": "cifar10", "label": labels, "cpu_seconds": 1800.0})
    assert rivals_table.missing(runs.assign(earlier=False))[2:] == ["| Q3 | cifar10 | 1 | 2 | 5 | 3 | 1.5 |"]
    assert rivals_table.missing(runs.assign(earlier=True))[2:] == ["| Q3 | cifar10 | 2 | 0 | 5 | 10 | 5.0 |"]
    assert rivals_table.missing(runs.head(5).assign(earlier=False)) == ["No row is short of seeds."]


def test_chance_alone_makes_few_rows_differ(tmp_path, runs, monkeypatch):
    monkeypatch.setattr(rivals_table, "SHUFFLES", 20)
    apart = paper_runs(file_of(tmp_path, runs, shift=60.0))
    cells = rivals_table.by_chance(runs, apart, beside_the_paper(runs, apart))[2].split(" | ")
    assert cells[:2] == ["| 3", "1"]
    assert float(cells[2]) < 0.5
    assert int(cells[3].rstrip("% |")) < 50


def test_only_runs_that_asked_nothing_are_played_to_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(ineural, "RUNS", tmp_path / "runs.csv")
    lines = ["covertype,3,400,0,released,9,9,9,0,2", "covertype,3,400,1,released,9,9,9,7,2"]
    ineural.RUNS.write_text("\n".join([",".join(ineural.COLUMNS), *lines, ""]))
    assert ineural.silent(10_000) == {("covertype", 3, 10_000, 0, "released")}


def test_runs_with_three_equal_first_labels_are_counted_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(ineural, "RUNS", tmp_path / "runs.csv")
    lines = ["covertype,3,400,0,released,9,3,3,0,1", "covertype,3,400,1,released,9,9,9,0,2"]
    lines += ["covertype,3,400,2,released,9,90,30,40,3", "covertype,3,10000,1,released,9,30,9,0,2"]
    ineural.RUNS.write_text("\n".join([",".join(ineural.COLUMNS), *lines, ""]))
    questions = [3, 15, 5000, 6000]
    theirs = pd.DataFrame({"dataset": "covertype", "strategy": rivals_table.INEURAL[3], "questions": questions})
    assert rivals_table.unequal(theirs, 3) == (1, 2)
    (line,) = rivals_table.first_rounds(theirs)[2:]
    assert line == "| 3 | released | 3 | 14 ± 8 | 1 of 1 | 1 of 2 | 0 | 1 of 3 | 1 |"
    paper, first, *_, everything = rivals_table.by_streams(theirs)[2:]
    assert paper == "| the paper's | 4 | 1 | 3 | 1 | - |"
    assert first == "| seeds 0 to 24 | 3 | 1 | 2 | 0 | 1 |"
    assert everything == "| all | 3 | 1 | 2 | 0 | 1 |"


def test_scores_stand_beside_the_authors_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(ineural, "SCORES", tmp_path / "scores.csv")
    rows = [f"covertype,6,400,{s},released,{n},{0.4 + s / 10}" for s in range(3) for n in rivals_table.PAPER_LABELS]
    ineural.SCORES.write_text("\n".join(["data,gamma,rounds,seed,form,labels,f1", *rows, ""]))
    lines = [line for line in rivals_table.scores_by_labels() if line.startswith("| 6 |")]
    assert lines[0].startswith("| 6 | the paper's | 0.393 ± 0.022 |")
    assert lines[1].startswith("| 6 | released | 0.500 ± 0.058 |")


def test_a_form_is_judged_by_what_stops_by_f1_and_by_the_questions_of_runs_that_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(ineural, "RUNS", tmp_path / "runs.csv")
    monkeypatch.setattr(ineural, "SCORES", tmp_path / "scores.csv")
    lines = [f"covertype,3,400,{seed},released,9,9,9,{seed},2" for seed in range(2)]
    lines += ["covertype,3,400,2,released,9,3,3,0,1", "covertype,3,10000,1,released,9,6000,9,0,2"]
    ineural.RUNS.write_text("\n".join([",".join(ineural.COLUMNS), *lines, ""]))
    rows = [f"covertype,3,400,{s},released,10,{0.3 + s / 100}" for s in range(3)]
    ineural.SCORES.write_text("\n".join(["data,gamma,rounds,seed,form,labels,f1", *rows, ""]))
    theirs = pd.DataFrame({"dataset": "covertype", "strategy": rivals_table.INEURAL[3], "questions": [3, 5000, 6100]})
    paper, ours = rivals_table.verdicts(theirs)[2:]
    assert paper == "| the paper's | 0 of 2 | - | - | 5000 to 6100 |"
    assert ours == "| released | 1 of 2 | 1 | -2.7 | 6000 |"


def test_covertype_in_another_form_has_the_same_rows():
    raw = np.concatenate([np.full((5, 10), 2000), np.eye(5, 44, dtype=int)], axis=1)
    known = Dataset("covertype", raw, np.arange(5), tuple("12345"))
    unscaled, once = (change(known) for change in ineural.DATA.values())
    rows = slice(0, 5)
    assert [one.n_features for one in (known, unscaled, once)] == [98, 98, 54]
    assert unscaled.rows(rows)[:, 10:].max() < 0.01 < once.rows(rows)[:, 10:].max()
    for one in (known, unscaled, once):
        np.testing.assert_allclose(np.linalg.norm(one.rows(rows), axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("form", list(ineural.CHANGES))
def test_a_form_without_an_option_changes_what_it_says(form):
    strategy = INeural(label_efficient(2), 3, seed=27)
    network, rng = strategy.network, np.random.default_rng(0)
    before = {name: value.clone() for name, value in network.f1.state_dict().items()}
    ineural.CHANGES[form](strategy)
    if form == "the authors' weights":
        torch.manual_seed(2)
        assert torch.equal(torch.cat(list(network.f1.blocks), 1), torch.nn.Linear(6, 100).weight)
        return
    network.remember(torch.ones(3), 0, 1.0, 0.5, torch.ones(100))
    network.train(rng)
    once = torch.cat([value.flatten() for value in network.f1.state_dict().values()])
    network.train(rng)
    twice = torch.cat([value.flatten() for value in network.f1.state_dict().values()])
    assert not torch.equal(once, torch.cat([value.flatten() for value in before.values()]))
    assert torch.equal(once, twice) == (form in ("networks anew", "new labels only"))


def test_boxes_are_drawn_for_each_table(tmp_path, runs):
    figures = list(draw_all_beside(runs, paper_runs(file_of(tmp_path, runs))))
    assert [name for name, _, _ in figures] == [
        "q1_beside_regret",
        "q1_beside_queries",
        "q1_app_beside_regret",
        "q1_app_beside_queries",
    ]
    assert all(png.startswith(b"\x89PNG") for _, _, png in figures)


def test_a_file_that_is_not_there_or_says_nothing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARINGLY_DATA", str(tmp_path / "data"))
    assert paper_runs() is None
    with pytest.raises(SettingsError, match=r"gone.csv holds no runs"):
        paper_runs(tmp_path / "gone.csv")
    (tmp_path / "odd.csv").write_text("table,dataset\nQ1,adult\n")
    with pytest.raises(SettingsError, match="no column 'strategy'"):
        paper_runs(tmp_path / "odd.csv")
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "runs.csv").write_text("table,dataset,strategy,regret,questions\nQ1,adult,Cesa,1,2\n")
    assert len(paper_runs()) == 1


def test_the_streams_of_images_are_the_authors_own():
    theirs = paper_runs()
    if theirs is None:
        pytest.skip("the authors' own runs are not at hand (paper/runs.csv beside SPARINGLY_DATA)")
    for name in authors_streams.STUDIES:
        data = load(name, "paper")
        streams = [authors_streams.authors_stream(data, seed) for seed in range(25)]
        ours = sorted(authors_streams.commonest(stream.y) for stream in streams)
        rows = theirs[(theirs["dataset"] == name) & ~theirs["table"].str.startswith("Q3")]
        for key, part in rows.groupby(["table", "strategy"]):
            assert sorted(part["majority_count"]) == ours, key
        assert all(len(set(stream.index.tolist())) == 9999 for stream in streams)


@pytest.mark.parametrize("kind", [NeuralCBP, Neuronal])
def test_two_networks_begin_with_the_weights_that_the_authors_seed_draws(kind):
    strategy = kind(label_efficient(3), 20, seed=7)
    authors_streams.begin(strategy, strategy.name)
    network, size = strategy.network, strategy.network.embedding.size
    torch.manual_seed(7)
    drawn = [torch.nn.Linear(*shape) for shape in ((20, 100), (100, 3), (size, 100), (100, 3))]
    for here, there in zip([*network.f1.linear, *network.f2.linear], drawn, strict=True):
        assert torch.equal(here.weight, there.weight)
        assert torch.equal(here.bias, there.bias)
    assert_orders_of_a_loader(strategy.rng)


def test_margin_begins_with_the_weights_that_the_authors_seed_draws():
    strategy = Margin(label_efficient(2), 20, seed=7)
    authors_streams.begin(strategy, "margin")
    torch.manual_seed(7)
    layers = [torch.nn.Linear(20, 100), torch.nn.Linear(100, 1)]
    for here, layer in zip(strategy.classifier.network.linear, layers, strict=True):
        torch.nn.init.normal_(layer.weight, std=0.1)
        assert torch.equal(here.weight, layer.weight)
        assert not here.bias.any()
    assert_orders_of_a_loader(strategy.rng)


def assert_orders_of_a_loader(order) -> None:
    """The next orders are those of torch's own loader, given the global generator as it is now."""
    for n in (5, 100):
        rows = torch.utils.data.TensorDataset(torch.arange(n))
        loaded = torch.utils.data.DataLoader(rows, batch_size=64, shuffle=True)
        assert torch.cat([batch for (batch,) in loaded]).tolist() == order.permutation(n).tolist()


def test_runs_on_one_stream_stand_beside_each_other(tmp_path, monkeypatch):
    monkeypatch.setattr(authors_streams, "RUNS", tmp_path / "runs.csv")
    rows = [("mnist", "Margin", seed, 100 + seed, 50.0 + seed, 3 if seed == 4 else 30 + seed) for seed in range(5)]
    rows += [("mnist", "Margin", seed, 999, 1.0, 1) for seed in (5, 6)]
    ours = pd.DataFrame(rows, columns=authors_streams.COLUMNS)
    ours.to_csv(authors_streams.RUNS, index=False)
    theirs = ours.rename(columns={"label": "strategy", "commonest": "majority_count"}).assign(table="Q2")[::-1]
    theirs.loc[theirs["seed"] < 2, "regret"] += 10
    line = authors_streams.table(theirs)[2]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:4] == ["mnist", "Margin", "5", "52 ± 1"], "streams that cannot be told apart are left out"
    assert cells[5] == "-4 ± 2"
    assert cells[-4:] == ["1", "0", "0", "3"]
    assert cells[9] == "1.00"

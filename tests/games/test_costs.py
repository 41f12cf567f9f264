"""Costs are read alike from values, text and files; what is wrong is named."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from sparingly.games import label_efficient
from sparingly.games.costs import cost_records, read_costs

CLASSES = ["benign", "malignant", "unclear"]
MATRIX = [[0, 10, 1], [1, 0, 1], [1, 2.5, 0]]
NAMED = [
    {"announced": "benign", "true": "malignant", "cost": 10},
    {"announced": "unclear", "true": "malignant", "cost": 2.5},
]
TEXTS = ["announced=benign,true=malignant:10", "announced=unclear,true=malignant:2.5"]
CSV = "announced\\true,benign,malignant,unclear\nbenign,0,10,1\nmalignant,1,0,1\nunclear,1,2.5,0\n"
FILES = {
    "matrix.csv": CSV,
    "bom.csv": "\ufeff" + CSV,
    "slash.csv": CSV.replace("\\", " / "),
    "shuffled.csv": "announced\\true,malignant,benign,unclear\nunclear,2.5,1,0\nbenign,10,0,1\nmalignant,0,1,1\n",
    "transposed.csv": "true\\announced,benign,malignant,unclear\nbenign,0,1,1\nmalignant,10,0,2.5\nunclear,1,1,0\n",
    "records.csv": "true,announced,cost\nmalignant,benign,10\nmalignant,unclear,2.5\n",
    "matrix.json": json.dumps(MATRIX),
    "records.json": json.dumps(NAMED),
    "costs.json": json.dumps({"costs": NAMED}),
    "ordered.toml": 'classes = ["malignant", "benign", "unclear"]\ncosts = [[0, 1, 1], [10, 0, 1], [2.5, 1, 0]]\n',
    "records.toml": '[[costs]]\nannounced = "benign"\ntrue = "malignant"\ncost = 10\n'
    '[[costs]]\nannounced = "unclear"\ntrue = "malignant"\ncost = 2.5\n',
    "texts.toml": f"costs = {json.dumps(TEXTS)}\n",
}


@pytest.mark.parametrize(
    "costs",
    [
        MATRIX,
        NAMED,
        TEXTS,
        ["announced=benign,true=malignant,cost=10", "true=malignant,announced=unclear:2.5"],
        [NAMED[0], TEXTS[1]],
        "0 10 1; 1 0 1; 1 2.5 0",
        "0,10,1;1,0,1;1,2.5,0",
        json.dumps(MATRIX),
        json.dumps(NAMED),
        pd.DataFrame(MATRIX, index=pd.Index(CLASSES, name="announced"), columns=pd.Index(CLASSES, name="true")).T,
    ],
)
def test_every_spelling_gives_the_same_matrix(costs):
    assert read_costs(costs, CLASSES).tolist() == MATRIX


@pytest.mark.parametrize("name", FILES)
def test_every_file_gives_the_same_matrix(tmp_path, name):
    (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    assert read_costs(tmp_path / name, CLASSES).tolist() == MATRIX
    assert read_costs(str(tmp_path / name), CLASSES).tolist() == MATRIX


def test_nothing_stated_is_none_and_one_cost_leaves_the_others():
    assert read_costs(None, CLASSES) is None
    assert read_costs("announced=a:b,true=c,d:3", ["a:b", "c,d"]).tolist() == [[0, 3], [1, 0]]
    assert read_costs("announced=0,true=1:5", [0, 1]).tolist() == [[0, 5], [1, 0]]


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ("announced=bening,true=malignant:1", "there is no class 'bening'; did you mean benign?"),
        ("announced=x,true=malignant:1", "there is no class 'x'; there are benign, malignant, unclear"),
        (
            "announced=benign,true=malignant:-1",
            "costs[announced benign, true malignant] is -1: it must not be negative",
        ),
        ("announced=benign,true=malignant:nan", "costs[announced benign, true malignant] is nan: it must be finite"),
        ("announced=benign,true=malignant:x", "'x' is not a number"),
        ("announced=benign,true=malignant", "must look like announced=benign,true=malignant:5"),
        ("announced=benign:5", "must look like"),
        ([TEXTS[0], "announced=benign,true=malignant:9"], "true malignant] is given twice: 10.0 and 9.0"),
        ([{"announced": "benign", "true": "malignant", "cost": None}], "is None: it must be a number"),
        ([{"announced": "benign", "cost": 1}], "must have 'announced', 'true' and 'cost'"),
        ("zero", "costs 'zero' are not numbers"),
        ("costs.xlsx", "costs 'costs.xlsx' are not numbers"),
        ("[[0, 1", "costs '[[0, 1' are not JSON"),
        ("0 1; 1 0", "costs has shape (2, 2): 3 classes need 3 rows (announced) and 3 columns (true)"),
        ("0 1; 1", "costs must be a matrix of numbers"),
        ('{"benign": {"malignant": 1}}', "a dict of costs does not say which key is announced"),
        ("nowhere.csv", "nowhere.csv cannot be read: No such file"),
    ],
)
def test_what_is_wrong_is_named(costs, message):
    with pytest.raises(ValueError) as refused:
        read_costs(costs, CLASSES)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", CSV.replace("announced\\true", ""), "the top-left cell is ''"),
        ("a.csv", "", "the top-left cell is ''"),
        ("a.csv", CSV.replace("10", "ten"), "costs[announced benign, true malignant] is 'ten': it must be a number"),
        ("a.csv", CSV.replace("\nunclear,1,2.5,0", ""), "the class 'unclear' is there 0 times"),
        ("a.csv", CSV.replace(",10,1", ",10"), "row 2 has 3 cells, the header has 4"),
        ("a.csv", CSV.replace("malignant,1", "malignent,1"), "there is no class 'malignent'; did you mean malignant?"),
        ("a.toml", "costs = [[0, 1", "a.toml: "),
        ("a.toml", 'costs = "a.toml"', "costs is missing"),
        ("a.toml", "costs = [[0, 1], [1, 0]]\nquery_cost = 2", "'query_cost' is not part of a file of costs"),
        ("a.json", "3", "costs is missing"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_the_file(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError) as refused:
        read_costs(Path(tmp_path / name), CLASSES)
    assert str(refused.value).startswith(str(tmp_path / name))
    assert message in str(refused.value)


@pytest.mark.parametrize("told", ["announced=ham,true=spam:5", "[[0, 5], [1, 0]]", "0 5; 1 0", "costs.csv"])
def test_one_in_a_list_is_read_as_it_would_be_alone(tmp_path, monkeypatch, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "costs.csv").write_text("announced,true,cost\nham,spam,5\n")
    for form in (told, [told]):
        assert read_costs(form, ["ham", "spam"]).tolist() == [[0, 5], [1, 0]]
        assert label_efficient(classes=["ham", "spam"], costs=form).costs[:2].tolist() == [[0, 5], [1, 0]]
    with pytest.raises(ValueError, match=r"say which classes there are \(classes=\)"):
        label_efficient(costs="announced=ham,true=spam:5")


def test_named_costs_among_many_classes():
    classes = [chr(ord("A") + k) for k in range(26)]
    game = label_efficient(classes=classes, costs=["announced=A,true=Z:9", "announced=Q,true=O:0.5"])
    assert (game.costs[0, 25], game.costs[16, 14], game.costs[1, 0], game.costs[3, 3]) == (9, 0.5, 1, 0)
    matrix = read_costs(["announced=A,true=Z:9", "announced=Q,true=O:0.5"], classes)
    assert read_costs(cost_records(matrix, classes), classes).tolist() == matrix.tolist()

"""Labels as a form, and what is said of labels that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman.base.errors import DataError, RunError
from dragoman.forms.labels import MOST, Labels


def test_values_are_places_in_alphabetical_order(tmp_path: Path) -> None:
    labels, counts = Labels.learn(["sport", " weather", "sport ", "animals"])
    assert labels.names == ("animals", "sport", "weather") and counts["sport"] == 2
    assert [one.tolist() for one in labels.encode(["weather", " sport"])] == [[2], [1]]
    assert labels.value("Sport") is None and labels.value("sport ") == 1
    assert labels.raw([[0], [2]]) == ["animals", "weather"] and labels.size == 3
    labels.save(tmp_path / "labels.json")
    again = Labels.load(tmp_path / "labels.json")
    assert again.names == labels.names and again.fingerprint == labels.fingerprint
    assert again.fingerprint != Labels(["sport", "animals", "weather"]).fingerprint


def test_one_label_is_no_choice() -> None:
    with pytest.raises(DataError, match=r"of 2 training examples, all have the label 'a'"):
        Labels.learn(["a", "a "])
    with pytest.raises(DataError, match="of 0 training examples, none has a label"):
        Labels.learn([])
    with pytest.raises(DataError, match=r"more than 10,000 different labels.*--columns"):
        Labels.learn(str(n) for n in range(MOST + 1))


@pytest.mark.parametrize(
    "content",
    ["{}", '["a"]', '["a", "a"]', '["a", 1]', '["a", ""]', "[", json.dumps(["a", "b" * 1001])],
)
def test_a_damaged_file_is_said_to_be_so(tmp_path: Path, content: str) -> None:
    (tmp_path / "labels.json").write_text(content)
    with pytest.raises(RunError, match=r"labels\.json is damaged"):
        Labels.load(tmp_path / "labels.json")
    with pytest.raises(RunError, match="cannot read"):
        Labels.load(tmp_path / "none.json")


def test_labels_that_could_not_be_read_back_are_refused(tmp_path: Path) -> None:
    names = [f"{n} " + "label " * 160 for n in range(400)]
    learned, _ = Labels.learn(names)
    learned.save(tmp_path / "labels.json")
    assert Labels.load(tmp_path / "labels.json").names == learned.names
    with pytest.raises(DataError, match=r"labels have .* characters together"):
        Labels.learn([f"{n} " + "label " * 160 for n in range(1000)])

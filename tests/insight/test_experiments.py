"""Experiments on a run: hiding, switching off, aligning; each against another way to the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import dragoman
from dragoman.base.errors import DragomanError
from dragoman.engine.attention import OpenedCell, open_cell
from dragoman.insight.experiments import (
    Change,
    find_words,
    head_importance,
    name_heads,
    parse_heads,
    what_if,
)
from dragoman.insight.head import by_hand, open_attention
from dragoman.insight.subject import transformer_of
from dragoman.models.interface import Part
from dragoman.nn.layout import Sequences
from dragoman.nn.probes import Probe
from dragoman.tasks.translation.translator import Translator, TranslatorSettings

SENTENCE = "The small man eats the dinosaur."


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return dragoman.load(tiny_run, TranslatorSettings(precision="fp32"))


def test_a_hidden_token_could_be_any_other(translator: Translator) -> None:
    """With a position hidden, nothing else that the model computes depends on its token."""
    model = translator.run.model()
    one = torch.tensor([20, 30, 40, 2])
    other = torch.tensor([20, 33, 40, 2])
    target = Sequences.of([torch.tensor([1, 50, 60])])

    def logits(source: torch.Tensor, hidden: tuple[int, ...]) -> torch.Tensor:
        with torch.inference_mode(), Probe(hidden=hidden):
            return model.project(model.decode(target, model.encode(Sequences.of([source]))))

    torch.testing.assert_close(logits(one, (1,)), logits(other, (1,)))
    assert not torch.allclose(logits(one, ()), logits(other, ()))
    assert not torch.allclose(logits(one, ()), logits(one, (1,)))


def test_search_and_scoring_agree_on_a_hidden_word(translator: Translator) -> None:
    change = Change(hidden=(1,), prefix="Der")
    found = what_if(translator, SENTENCE, change)
    assert found.after.text.startswith("Der")
    assert found.before.text == translator(SENTENCE).text
    # Of the very tokens that were found, however their text would be cut anew.
    run, model, ids = translator.run, translator.plain, found.before.ids
    source = Sequences.of([torch.tensor(translator.source_ids(SENTENCE))])
    target = Sequences.of([torch.tensor([run.target_text.bos, *ids])])
    with torch.inference_mode():
        rows = model.project(model.decode(target, model.encode(source))).log_softmax(-1)
    given = rows.gather(1, torch.tensor([*ids, run.target_text.eos])[:, None])
    assert found.before_log_probability == pytest.approx(float(given.sum()), abs=1e-3)
    assert found.before_under_change != pytest.approx(found.before_log_probability)


def test_all_heads_off_reads_nothing(translator: Translator) -> None:
    """Without cross-attention the translation cannot depend on the source."""
    off = Change(heads_off=parse_heads(translator, ["cross.*.*"]))
    first = what_if(translator, SENTENCE, off).after
    second = what_if(translator, "Who sees the old queen?", off).after
    shared = min(len(first.tokens), len(second.tokens))
    assert first.tokens[:shared] == second.tokens[:shared]


def test_heads_are_named_from_one(translator: Translator) -> None:
    assert parse_heads(translator, ["cross.2.1", "encoder.1.4"]) == {
        ("decoder.1.cross_attention", 0),
        ("encoder.0.attention", 3),
    }
    assert len(parse_heads(translator, ["decoder.*.*"])) == 8
    named = ["cross.1.1", "cross.2.4", "decoder.1.3", "encoder.2.2"]
    heads = parse_heads(translator, reversed(named))
    assert name_heads(translator.plain, heads) == named
    for wrong, told in (("cross.3.1", "2 layers"), ("cross.1.5", "4 heads"), ("head 3", "ATTEN")):
        with pytest.raises(DragomanError, match=told):
            parse_heads(translator, [wrong])


def test_words_are_found_by_name_or_number() -> None:
    names = ("The", "dog", "sees", "the", "dog.", "</s>")
    assert find_words(names, ["dog"]) == (1, 4)
    assert find_words(names, ["3"]) == (2,)
    assert find_words(names, ["THE", "</s>"]) == (0, 3, 5)
    with pytest.raises(DragomanError, match="2 dog"):
        find_words(names, ["cat"])


def test_importance_of_no_difference_is_nothing(translator: Translator) -> None:
    pairs = [(SENTENCE, "Der kleine Mann isst den Dinosaurier."), ("Who?", "Wer?")]
    found = head_importance(translator, pairs)
    scored = translator.score(pairs)
    values = [value for one in scored for value in one.token_log_probabilities]
    assert found.tokens == len(values)
    assert found.whole == pytest.approx(-np.mean(values))
    growth = [one[3] for one in found.ranking()]
    assert growth == sorted(growth, reverse=True)
    assert any(abs(one) > 1e-5 for one in growth)


def test_an_opened_head_is_the_formula(translator: Translator) -> None:
    ids = translator(SENTENCE).ids[:6]
    opened = open_attention(translator, "cross", 1, SENTENCE, ids)
    record = translator.look(SENTENCE, ids)
    for head in range(4):
        weights, outputs = by_hand(
            opened.queries[head].tolist(),
            opened.keys[head].tolist(),
            opened.values[head].tolist(),
            opened.scale,
        )
        np.testing.assert_allclose(weights, record.cross[1, head], atol=1e-5)
        width = len(outputs[0])
        joined = opened.joined[:, head * width : (head + 1) * width]
        np.testing.assert_allclose(outputs, joined, atol=1e-5)
    with pytest.raises(DragomanError, match="layer 10 of encoder attention; this run has 2"):
        open_attention(translator, "encoder", 9, SENTENCE, ids)


@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
def test_what_single_cells_add_is_what_the_attention_adds(
    translator: Translator, part: Part
) -> None:
    """Summed over heads and columns, with the bias of W^O, against the model's own; and each
    weight is the softmax of its product."""
    model, run = transformer_of(translator.plain), translator.run
    source = torch.tensor(translator.source_ids(SENTENCE))
    target = torch.tensor([run.target_text.bos, *translator(SENTENCE).ids[:4]])
    attention = model.attentions_of(part)[1]
    row, off = 2, (attention.name, 3)
    with torch.inference_mode(), Probe(heads_off=[off], points=("added",)) as probe:
        model.decode(Sequences.of([target]), model.encode(Sequences.of([source])))
    (sublayer,) = (one for one in model.sublayers if one.name == attention.name)
    wanted = probe.taken[sublayer.name, "added"][row]
    columns = len(target) if part == "decoder" else len(source)

    def opened(head: int, column: int) -> OpenedCell:
        return open_cell(model, attention, head, row, column, source, target, heads_off=[off])

    cells = [[opened(head, column) for column in range(columns)] for head in range(4)]
    bias = model.get_submodule(attention.name).output.bias
    added = sum(cell.adds for of_head in cells for cell in of_head) + bias.detach()
    torch.testing.assert_close(added, wanted, atol=1e-5, rtol=1e-4)
    for of_head in cells:
        seen = of_head if part != "decoder" else of_head[: row + 1]
        scores = torch.tensor([cell.product * cell.scale for cell in seen])
        weights = torch.tensor([cell.weight for cell in seen])
        torch.testing.assert_close(scores.softmax(0), weights, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(
            sum(cell.adds for cell in of_head), of_head[0].head_adds, atol=1e-5, rtol=1e-4
        )
    assert not cells[3][0].adds.any()

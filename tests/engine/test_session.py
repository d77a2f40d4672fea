"""A session of looking: what it sees is what the model does, as it is and under an intervention."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import dragoman
from dragoman.engine.engine import Engine
from dragoman.engine.session import InspectionRequest, InspectionSession, Intervention, use_check
from dragoman.models.catalogue.fastest import as_it_is
from dragoman.tasks.translation.translator import Translator, TranslatorSettings

SENTENCE = "The small man eats the dinosaur."


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return dragoman.load(tiny_run, TranslatorSettings(precision="fp32"))


@pytest.fixture(scope="module")
def session(translator: Translator) -> InspectionSession:
    return InspectionSession(translator.engine)


def wanted(translator: Translator, under: Intervention, **changes: int) -> InspectionRequest:
    settings = translator.engine.search_settings.model_copy(update=changes)
    return InspectionRequest(SENTENCE, translator.source_ids(SENTENCE), settings, under)


def interventions(translator: Translator) -> list[Intervention]:
    first = translator.plain.attentions_of("cross")[0]
    return [Intervention(), Intervention(hidden=(1, 2)), Intervention().without(first.name, 0)]


def test_what_is_seen_is_what_is_translated(
    translator: Translator, session: InspectionSession
) -> None:
    """The output, its probability and every weight, each got in another way too."""
    seen_texts = set()
    for under in interventions(translator):
        seen = session.inspect(wanted(translator, under))
        with under.probe():
            (found,) = translator.batch([SENTENCE])
        assert seen.best.tokens == found.ids and seen.text == found.text
        record = translator.look(SENTENCE, found.ids, under.probe(record=True))
        for part, weights in seen.attention.items():
            assert torch.equal(weights, torch.from_numpy(record.weights(part)).half())
        assert seen.target == list(record.target)
        believed = session.output_log_p(SENTENCE, seen.source_ids, seen.best.tokens, under)
        with under.probe():
            (scored,) = translator.score_ids([SENTENCE], [seen.best.tokens])
        assert believed == pytest.approx(scored.log_probability, abs=1e-3)
        seen_texts.add((seen.best.tokens, round(believed, 4)))
    assert len(seen_texts) == 3, "an intervention changes something"


def test_what_is_served_is_looked_into(translator: Translator) -> None:
    """Its tokens, read by the network: where that alone writes another output, so is said."""
    network, own = translator.plain, translator(SENTENCE)
    torch.manual_seed(5)
    other = translator.run.model()
    for weights in other.parameters():
        weights.data += 0.3 * weights.std(correction=0) * torch.randn_like(weights)
    engine = translator.engine
    forms = engine.source, engine.target, engine.search_settings
    served = Engine(network, *forms, path=as_it_is(other))
    request = wanted(translator, Intervention())
    ((expected,),) = served.search([served.request(request.ids)])
    assert expected.tokens != own.ids
    seen = InspectionSession(served).inspect(request)
    assert (seen.best.tokens, seen.best.finished) == (expected.tokens, expected.finished)
    (read,) = served.score([request.ids], [expected.tokens])
    costs = read.token_log_probabilities[: len(seen.best.token_log_probabilities)]
    assert seen.best.token_log_probabilities == pytest.approx(costs)
    assert seen.own is not None and seen.own.text == own.text
    place = seen.own.place
    assert expected.tokens[:place] == own.ids[:place]
    assert expected.tokens[place : place + 1] != own.ids[place : place + 1]
    under = Intervention(hidden=(1,))
    hidden = InspectionSession(served).inspect(wanted(translator, under))
    with under.probe():
        assert hidden.best.tokens == translator(SENTENCE).ids and hidden.own is None


def test_nothing_is_said_where_the_network_is_served(
    translator: Translator, session: InspectionSession
) -> None:
    assert session.inspect(wanted(translator, Intervention())).own is None


def test_heads_are_switched_off_one_after_the_other() -> None:
    under = Intervention(hidden=(1,)).without("a", 0).without("b", 1)
    assert under.heads_off == {("a", 0), ("b", 1)} and under.hidden == (1,)


def test_each_head_is_off_once(translator: Translator, session: InspectionSession) -> None:
    under, asked = Intervention(hidden=(1,)), list[Intervention]()

    def score(one: Intervention) -> float:
        asked.append(one)
        return float(len(asked))

    found = session.without_each_head(score, under)
    attentions = translator.plain.attentions
    every = [(one.name, head) for one in attentions for head in range(one.heads)]
    assert [one.heads_off for one in asked] == [frozenset([head]) for head in every]
    assert all(one.hidden == (1,) for one in asked)
    for part, layers in found.items():
        of_part = translator.plain.attentions_of(part)
        assert [len(heads) for heads in layers] == [one.heads for one in of_part]
        for layer, heads in zip(of_part, layers, strict=True):
            assert heads == [every.index((layer.name, head)) + 1.0 for head in range(len(heads))]


def test_work_ends_at_its_next_part(translator: Translator, session: InspectionSession) -> None:
    class Enough(Exception):
        pass

    parts = 0

    def check() -> None:
        nonlocal parts
        parts += 1
        if parts == 3:
            raise Enough

    with use_check(check), pytest.raises(Enough):
        session.inspect(wanted(translator, Intervention()))
    assert parts == 3


def test_sizes_are_told_before_and_behind_the_search(
    translator: Translator, session: InspectionSession
) -> None:
    told: list[tuple[int, int]] = []
    request = wanted(translator, Intervention(), max_length=4)
    seen = session.inspect(request, lambda *sizes: told.append(sizes))
    assert told == [(len(request.ids), 1), (len(request.ids), len(seen.best.tokens) + 1)]

"""What every model and every fast path must do alike: the contract of ``models/interface.py``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from implementations import (
    EVERY_NETWORK,
    IMPLEMENTATIONS,
    READERS,
    SOURCE,
    TARGET,
    Implementation,
    Path,
)
from torch import Tensor

from dragoman.models.interface import Network, writing
from dragoman.models.searched import Floats32
from dragoman.nn.dropout import drawing
from dragoman.nn.layout import Layout, Sequences
from dragoman.nn.probes import Guide, Probe

BOS = 1


@pytest.fixture(params=IMPLEMENTATIONS)
def one(request: pytest.FixtureRequest) -> Iterator[Implementation]:
    chosen = IMPLEMENTATIONS[request.param]
    torch.set_default_dtype(chosen.dtype)
    torch.manual_seed(0)
    with torch.no_grad():
        yield chosen
    torch.set_default_dtype(torch.float32)


@pytest.fixture(params=EVERY_NETWORK)
def network(request: pytest.FixtureRequest) -> Iterator[Network]:
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield EVERY_NETWORK[request.param]()
    torch.set_default_dtype(torch.float32)


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest) -> Iterator[Network]:
    """A model that writes nothing."""
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    with torch.no_grad():
        yield READERS[request.param]()
    torch.set_default_dtype(torch.float32)


def sentences(*lengths: int) -> list[Tensor]:
    return [torch.randint(3, SOURCE, (length,)) for length in lengths]


def prefixes(*lengths: int) -> list[Tensor]:
    begin = torch.tensor([BOS])
    return [torch.cat([begin, torch.randint(0, TARGET, (length - 1,))]) for length in lengths]


def distance(found: Tensor, expected: Tensor) -> float:
    assert found.shape == expected.shape
    if not found.numel():  # the memory of a model that reads nothing
        return 0.0
    return float((found.double() - expected.double()).norm() / expected.double().norm())


def logits(model: Path, sources: list[Tensor], targets: list[Tensor]) -> list[Tensor]:
    """(T, V) of each pair, by teacher forcing."""
    layout = Sequences.of(targets)
    hidden = model.decode(layout, model.encode(Sequences.of(sources)))
    return list(model.project(hidden).split(list(layout.layout.lengths)))


def said(network: Network, sources: list[Tensor], targets: list[Tensor]) -> list[Tensor]:
    """All that a network gives out: ``logits``, or, where it writes nothing, (S, V) of each
    source."""
    if network.settings.writes:
        return logits(writing(network), sources, targets)
    memory = network.encode(Sequences.of(sources))
    return list(network.project(memory.rows).split(list(memory.layout.lengths)))


def followed(model: Path, source: Tensor, target: Tensor) -> Tensor:
    """(T, V) after each of ``target``, token by token, alone."""
    state = model.start(model.encode(Sequences.of([source])))
    return torch.cat([model.step(token.view(1, 1), state).clone() for token in target])


def test_a_weight_has_one_name(network: Network) -> None:
    """What training writes (each parameter once) is what a run is opened from."""
    assert list(network.state_dict()) == [name for name, _ in network.named_parameters()]


def test_decode_equals_each_sentence_alone(one: Implementation) -> None:
    model, sources, targets = one.make(), sentences(7, 1, 5), prefixes(4, 9, 1)
    together = logits(model, sources, targets)
    for source, target, found in zip(sources, targets, together, strict=True):
        assert distance(found, logits(model, [source], [target])[0]) <= one.alike


def test_no_position_sees_a_later_token(one: Implementation) -> None:
    model, sources, targets = one.make(), sentences(6), prefixes(8)
    (before,) = logits(model, sources, targets)
    changed = targets[0].clone()
    changed[5:] = (changed[5:] + 7) % TARGET
    (after,) = logits(model, sources, [changed])
    assert distance(after[:5], before[:5]) <= one.alike
    assert distance(after[5:], before[5:]) > 1e-3


def test_step_is_decode_however_cut(one: Implementation) -> None:
    model, sources, targets = one.make(), sentences(5, 2, 4), prefixes(6, 6, 6)
    whole = torch.stack(logits(model, sources, targets))  # (3, 6, V)
    single = torch.stack([followed(model, *pair) for pair in zip(sources, targets, strict=True)])
    for cut in (1, 2, 3, 6):
        state = model.start(model.encode(Sequences.of(sources)))
        for part in torch.stack(targets).split(cut, dim=1):
            found, place = model.step(part, state), int(state.lengths[0]) - 1
            assert distance(found, whole[:, place]) <= one.as_plain, cut
            assert distance(found, single[:, place]) <= one.alike, cut
        assert state.lengths.tolist() == [6, 6, 6]


def test_selecting_and_admitting_at_any_moment_changes_no_result(one: Implementation) -> None:
    model = one.make()
    generator = torch.Generator().manual_seed(4)
    pool, sources = sentences(4, 7, 3, 1), sentences(5, 2)
    state = model.start(model.encode(Sequences.of(sources)))
    owners, pasts = [0, 1], [[BOS], [BOS]]
    found: dict[tuple[int, tuple[int, ...]], list[Tensor]] = {}
    for turn in range(14):
        rows = model.step(torch.tensor([[past[-1]] for past in pasts]), state).clone()
        for owner, past, row in zip(owners, pasts, rows, strict=True):
            found.setdefault((owner, tuple(past)), []).append(row)
        # Repeat, drop and reorder rows within each source, dropping a source now and then.
        kept: list[int] = []
        for owner in dict.fromkeys(owners):
            mine = [r for r, o in enumerate(owners) if o == owner]
            if len(set(owners)) > 1 and turn % 5 == 4 and owner == owners[0]:
                continue
            kept += [mine[p] for p in torch.randint(len(mine), (2,), generator=generator).tolist()]
        state.select(torch.tensor(kept))
        owners = [owners[r] for r in kept]
        pasts = [[*pasts[r], int(torch.randint(0, TARGET, (1,)))] for r in kept]
        if turn % 3 == 2 and pool:
            sources.append(pool.pop())
            state.admit(model.encode(Sequences.of([sources[-1]])))
            owners.append(len(sources) - 1)
            pasts.append([BOS])
        assert state.lengths.tolist() == [len(p) - 1 for p in pasts]
    # The longest first: on its way each passes all that it grew from.
    for owner, past in sorted(found, key=lambda hypothesis: -len(hypothesis[1])):
        if (owner, past) not in found:
            continue
        for length, alone in enumerate(followed(model, sources[owner], torch.tensor(past)), 1):
            for row in found.pop((owner, past[:length]), []):
                assert distance(row, alone) <= one.alike, (owner, past[:length])
    assert not found


@pytest.mark.parametrize("k", [1, 4, TARGET])
def test_best_is_step_then_log_softmax_then_constrain_then_top_k(
    one: Implementation, k: int
) -> None:
    model, source = one.make(), Sequences.of(sentences(5, 3))
    tokens = torch.tensor([[BOS], [BOS]])
    whole = model.step(tokens, model.start(model.encode(source))).float().log_softmax(-1)
    forbidden = int(whole[0].argmax())

    def constrain(x: Floats32) -> Floats32:
        x[:, forbidden] = -np.inf
        return x

    for change in (None, constrain):
        values, ids = model.best(tokens, model.start(model.encode(source)), k, change)
        expected = whole if change is None else torch.from_numpy(change(whole.numpy().copy()))
        torch.testing.assert_close(values, expected.topk(k).values, atol=1e-4, rtol=0)
        torch.testing.assert_close(expected.gather(1, ids), values, atol=1e-4, rtol=0)
        assert change is None or k == TARGET or forbidden not in ids.tolist()[0]


def test_projecting_on_some_tokens_is_a_part_of_projecting_on_all(one: Implementation) -> None:
    model = one.make()
    hidden = model.decode(Sequences.of(prefixes(4)), model.encode(Sequences.of(sentences(3))))
    ids = torch.tensor([5, 0, 31])
    assert distance(model.project(hidden, ids), model.project(hidden)[:, ids]) <= one.alike


# ---- reading alone


def test_a_source_is_read_as_if_it_were_alone(reader: Network) -> None:
    sources = sentences(7, 1, 5)
    together = said(reader, sources, [])
    for source, found in zip(sources, together, strict=True):
        assert distance(found, said(reader, [source], [])[0]) < 1e-9


def test_every_row_sees_what_stands_before_and_behind(reader: Network) -> None:
    (source,) = sentences(6)
    (before,) = said(reader, [source], [])
    for place in range(6):
        changed = source.clone()
        changed[place] = 3 + (source[place] + 4) % (SOURCE - 3)
        (after,) = said(reader, [changed], [])
        for row in range(6):
            assert distance(after[row], before[row]) > 1e-4, (place, row)


def test_a_reader_projects_some_outputs_alone(reader: Network) -> None:
    rows = reader.encode(Sequences.of(sentences(4))).rows
    ids = torch.tensor([2, 0])
    assert distance(reader.project(rows, ids), reader.project(rows)[:, ids]) < 1e-9


# ---- looking inside


def test_what_a_model_says_can_be_looked_at_is_what_is_seen(network: Network) -> None:
    sources, targets = sentences(5, 3), prefixes(4, 2)
    plain = said(network, sources, targets)
    with Probe() as probe:
        inside = said(network, sources, targets)
    for one, other in zip(plain, inside, strict=True):
        assert distance(other, one) < 1e-9
    assert set(probe.attention) == {attention.name for attention in network.attentions}
    for attention in network.attentions:
        weights = probe.attention[attention.name]
        looking = 5 if attention.part == "encoder" else 4
        looked_at = 4 if attention.part == "decoder" else 5
        assert weights.shape == (2, attention.heads, looking, looked_at)
        torch.testing.assert_close(weights[0].sum(-1), torch.ones(attention.heads, looking))
    for part in ("encoder", "decoder", "cross"):
        layers = [a.layer for a in network.attentions if a.part == part]
        assert layers == list(range(len(layers)))


def test_each_head_can_be_switched_off(network: Network) -> None:
    sources, targets = sentences(5), prefixes(4)
    (plain,) = said(network, sources, targets)
    for attention in network.attentions:
        for head in range(attention.heads):
            with Probe(heads_off=[(attention.name, head)]):
                (found,) = said(network, sources, targets)
            assert distance(found, plain) > 1e-4, (attention, head)
    (again,) = said(network, sources, targets)
    assert distance(again, plain) < 1e-9


def test_no_attention_looks_at_a_hidden_word(network: Network) -> None:
    with Probe(hidden=[1]) as probe:
        said(network, sentences(5), prefixes(4))
    for attention in network.attentions:
        if attention.part != "decoder":
            assert float(probe.attention[attention.name][..., 1].abs().max()) == 0.0


# ---- training


def test_its_settings_know_how_many_heads_look_at_the_source(network: Network) -> None:
    """By them a recipe is refused that would teach a head which is not there."""
    heads = tuple(attention.heads for attention in network.attentions_of("cross"))
    assert network.settings.cross_heads == heads


def test_a_guide_is_given_the_weights_of_its_head_and_they_can_be_learned(network: Network) -> None:
    network.requires_grad_(True)
    sources, targets = sentences(5, 3), prefixes(4, 2)
    with torch.no_grad(), Probe() as probe:
        plain = said(network, sources, targets)
    for attention in network.attentions_of("cross"):
        head = attention.heads - 1
        with Guide(attention.name, head) as guide:
            guided = said(network, sources, targets)
        assert guide.weights is not None
        torch.testing.assert_close(
            guide.weights.double(), probe.attention[attention.name][:, head], atol=1e-6, rtol=0
        )
        for one, other in zip(plain, guided, strict=True):
            assert distance(other.detach(), one) < 1e-9
        network.zero_grad()
        guide.weights[0, -1, 0].backward()
        assert any(
            parameter.grad is not None and float(parameter.grad.abs().max()) > 0
            for parameter in network.parameters()
        )


def test_dropout_belongs_to_the_examples_however_a_batch_is_cut(network: Network) -> None:
    for module in network.modules():
        if isinstance(getattr(module, "rate", None), float):
            module.rate = 0.3  # type: ignore[assignment]
    network.train()
    sources, targets = sentences(7, 1, 5, 5), prefixes(4, 9, 1, 4)
    row_keys = torch.randint(-(2**31), 2**31 - 1, (4,), dtype=torch.int32)

    def hidden(which: list[int], seed: int = 5) -> list[Tensor]:
        sides = []
        for every in (sources, targets):
            side = [every[i] for i in which]
            layout = Layout([len(s) for s in side], first_row_keys=row_keys[which])
            sides.append(Sequences(torch.cat(side), layout))
        with drawing(seed):
            memory = network.encode(sides[0])
            if not network.settings.writes:
                return list(memory.rows.split(list(memory.layout.lengths)))
            rows = writing(network).decode(sides[1], memory)
        return list(rows.split(list(sides[1].layout.lengths)))

    whole = hidden([0, 1, 2, 3])
    for cut in ([[0, 1], [2, 3]], [[3], [1, 0], [2]], [[2, 0, 3, 1]]):
        for part in cut:
            for place, found in zip(part, hidden(part), strict=True):
                assert distance(found, whole[place]) < 1e-9
    assert all(distance(a, b) > 0.01 for a, b in zip(hidden([0, 1, 2, 3], 6), whole, strict=True))


def test_every_weight_learns(network: Network) -> None:
    network.requires_grad_(True)
    found = said(network, sentences(5, 3), prefixes(4, 2))
    torch.cat(found).logsumexp(-1).sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None and float(parameter.grad.abs().max()) > 0, name

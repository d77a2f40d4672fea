"""How much sound a transcription hears in a second of computing, beside ``transformers``.

    python benchmarks/hearing_speed.py runs/an4 data/an4/dev.tsv

The recordings of a list (file, text, ...) are transcribed by the run on one core, from their frames
to tokens, and by a Speech2Text model of transformers with random weights and the same sizes: width,
layers, heads, subsampling, vocabulary and beam. Both write the same number of tokens for each
recording, as many as its text has, so that neither gains by stopping early. Times are processor
time, the least of some rounds. ``--together``: recordings in one batch of transformers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman.engine.settings import TranslatorSettings
from dragoman.forms.rows.settings import FramesSource
from dragoman.models.settings import TransformerSettings
from dragoman.runs.run import Run
from dragoman.tasks.translation.translator import Translator

Rows = np.ndarray[Any, np.dtype[np.float32]]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument("run", type=Path)
    options.add_argument("list", type=Path)
    options.add_argument("--recordings", type=int, default=64)
    options.add_argument("--together", type=int, default=16)
    options.add_argument("--beams", type=int, nargs="+", default=[1, 4])
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    run = Run.open(given.run)
    source = run.recipe.source
    assert isinstance(source, FramesSource)
    lines = given.list.read_text(encoding="utf-8").splitlines()[: given.recordings]
    names, texts = zip(*(line.split("\t")[:2] for line in lines), strict=True)
    files = [str(given.list.parent / name) for name in names]
    rows = [np.asarray(one) for one in run.source.read(files)]
    reading = min(processor_seconds(lambda: run.source.read(files)) for _ in range(given.rounds))
    counts = [len(one) for one in run.target.tokens(texts)]
    seconds = sum(map(len, rows)) * source.hop_ms / 1000
    print(f"{len(rows)} recordings, {seconds:.0f} s of sound, {sum(counts)} tokens, one core")
    print(f"from files to frames{'':<31} {seconds / reading:7.1f} x real time")
    rival = speech2text(run, source)
    for beam in given.beams:
        timed: dict[str, Callable[[], None]] = {}
        for name, changes in (
            ("int8 or what is fastest", {}),
            ("the same, CTC in the search", {"ctc_weight": 0.5}),
            ("plain torch in fp32", {}),
        ):
            precision = "fp32" if "fp32" in name else "auto"
            timed[f"dragoman, {name}"] = ours(run, rows, counts, beam, precision, changes)
        for together in (1, given.together):
            name = f"transformers, {together} at a time"
            timed[name] = theirs(rival, rows, counts, beam, together)
        for name, hear in timed.items():
            best = min(processor_seconds(hear) for _ in range(given.rounds))
            print(f"beam {beam}  {name:<42} {seconds / best:7.1f} x real time", flush=True)


def processor_seconds(hear: Callable[[], None]) -> float:
    began = time.process_time()
    hear()
    return time.process_time() - began


def ours(
    run: Run, rows: Sequence[Rows], counts: Sequence[int], beam: int, precision: Any,
    changes: dict[str, float],
) -> Callable[[], None]:  # fmt: skip
    """The search of the run for so many tokens each."""
    search = run.recipe.search.model_copy(
        update={"beam": beam, "n_best": 1, "ctc_weight": 0.0, **changes}
    )
    engine = Translator(run, TranslatorSettings(precision=precision, threads=1), search).engine
    requests = [
        engine.request(one, search.model_copy(update={"min_length": count, "max_length": count}))
        for one, count in zip(rows, counts, strict=True)
    ]

    def hear() -> None:
        found = engine.search(requests)
        assert [len(one[0].tokens) for one in found] == list(counts)

    hear()
    return hear


def speech2text(run: Run, source: FramesSource) -> Any:
    """A model of transformers of the sizes of a run, with random weights."""
    from transformers import Speech2TextConfig, Speech2TextForConditionalGeneration

    model = run.recipe.model
    assert isinstance(model, TransformerSettings)
    heads = model.attention.num_heads
    halvings = source.subsample.bit_length() - 1
    config = Speech2TextConfig(
        vocab_size=run.target.size, d_model=model.model_dim,
        encoder_layers=model.encoder_layers, decoder_layers=model.decoder_layers,
        encoder_attention_heads=heads, decoder_attention_heads=heads,
        encoder_ffn_dim=model.ffn_dim, decoder_ffn_dim=model.ffn_dim,
        num_conv_layers=halvings, conv_kernel_sizes=(3,) * halvings, conv_channels=64,
        input_feat_per_channel=source.row_width, max_source_positions=6_000,
        max_target_positions=1_024, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=2,
    )  # fmt: skip
    return Speech2TextForConditionalGeneration(config).eval()


def theirs(
    model: Any, rows: Sequence[Rows], counts: Sequence[int], beam: int, together: int
) -> Callable[[], None]:
    """The same for so many tokens each; in a batch, as many as the longest of it, so that batches
    are of like length."""
    order = sorted(range(len(rows)), key=lambda place: (counts[place], len(rows[place])))
    batches = [order[first : first + together] for first in range(0, len(order), together)]

    @torch.inference_mode()
    def hear() -> None:
        for batch in batches:
            longest = max(len(rows[place]) for place in batch)
            features = torch.zeros(len(batch), longest, rows[0].shape[1])
            mask = torch.zeros(len(batch), longest, dtype=torch.int64)
            for line, place in enumerate(batch):
                features[line, : len(rows[place])] = torch.from_numpy(rows[place]).float()
                mask[line, : len(rows[place])] = 1
            count = max(counts[place] for place in batch) + 1
            model.generate(
                input_features=features, attention_mask=mask, num_beams=beam, do_sample=False,
                min_new_tokens=count, max_new_tokens=count,
            )  # fmt: skip

    hear()
    return hear


if __name__ == "__main__":
    main()

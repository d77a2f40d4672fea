"""What was found for a text, as the API tells it: its translations, with their words and tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dragoman.forms.form import Form
from dragoman.forms.passage import Passage, Piece
from dragoman.search.hypothesis import Hypothesis
from dragoman.serving import schema
from dragoman.serving.translate.proofs import sources_of
from dragoman.serving.translate.words import Word, words_of
from dragoman.tasks.translation.proofreading.proofreader import Proof
from dragoman.tasks.translation.proofreading.warning import TranslationWarning


def texts_of(target: Form, hypotheses: Sequence[Hypothesis]) -> list[str]:
    """The texts of some hypotheses."""
    return target.raw([one.tokens for one in hypotheses])


def words_in(target: Form, hypothesis: Hypothesis) -> list[Word]:
    """The words of a hypothesis."""
    (text,) = texts_of(target, [hypothesis])
    pieces, values = target.shown(hypothesis.tokens), hypothesis.token_log_probabilities
    return words_of(text, pieces, values, spaced=target.spaced)


def hypothesis_message(
    target: Form, hypothesis: Hypothesis, proof: Proof | None = None
) -> schema.Hypothesis:
    """One translation of one sentence, with its words and tokens, and what is doubtful."""
    (text,) = texts_of(target, [hypothesis])
    words = words_in(target, hypothesis)
    sources = [None] * len(words) if proof is None else sources_of(words, proof)
    tokens, values = hypothesis.tokens, hypothesis.token_log_probabilities
    return schema.Hypothesis(
        text=text,
        score=hypothesis.score,
        log_probability=hypothesis.log_probability,
        finished=hypothesis.finished,
        words=[
            schema.Word(
                before=word.before,
                text=word.text,
                probability=word.probability,
                first=word.first,
                count=word.count,
                source=source,
            )
            for word, source in zip(words, sources, strict=True)
        ],
        warnings=None if proof is None else [_warning(one) for one in proof.warnings],
        tokens=[
            schema.Token(id=token, piece=piece, log_probability=value)
            for token, piece, value in zip(tokens, target.shown(tokens), values, strict=False)
        ],
    )


def sentence_message(
    target: Form, piece: Piece, hypotheses: Sequence[Hypothesis], proof: Proof | None = None
) -> schema.Sentence:
    """A sentence with all that is known of its translations; ``proof``: of the best."""
    return schema.Sentence(
        source=piece.text,
        behind=piece.behind,
        hypotheses=[
            hypothesis_message(target, hypothesis, proof if number == 0 else None)
            for number, hypothesis in enumerate(hypotheses)
        ],
    )


def translation_message(
    head: schema.Translation,
    target: Form,
    passage: Passage,
    found: Sequence[Sequence[Hypothesis]],
    proofs: Sequence[Proof] | None = None,
) -> Iterator[bytes]:
    """A whole text with all that is known of its translation: JSON, part by part. ``head``: the
    same without its text and sentences; ``proofs``: of the best translation of each sentence."""
    texts = []
    for hypotheses in found:
        texts += texts_of(target, hypotheses[:1])
        yield b""
    text = passage.join(texts)
    whole = head.model_copy(update={"text": text}).model_dump_json(exclude_none=True)
    assert whole.endswith("]}"), "the sentences stand last"
    yield whole[:-2].encode()
    for number, (piece, hypotheses) in enumerate(zip(passage.pieces, found, strict=True)):
        comma = "," if number else ""
        sentence = sentence_message(target, piece, []).model_dump_json(exclude_none=True)
        assert sentence.endswith("[]}"), "the hypotheses stand last"
        yield (comma + sentence[:-2]).encode()
        for rank, hypothesis in enumerate(hypotheses):
            proof = proofs[number] if proofs and rank == 0 else None
            told = hypothesis_message(target, hypothesis, proof)
            comma = "," if rank else ""
            yield (comma + told.model_dump_json(exclude_none=True)).encode()
        yield b"]}"
    yield b"]}"


def _warning(found: TranslationWarning) -> schema.TranslationWarning:
    return schema.TranslationWarning(
        code=found.code,
        side=found.side,
        begin=found.begin,
        end=found.end,
        text=found.text,
        languages=list(found.languages),
        covered=found.covered,
        message=str(found),
    )

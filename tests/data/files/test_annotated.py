"""Tagged words in three layouts, and what is said of files that have none."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from command_line import Dragoman

from dragoman.base.errors import DataError, RecipeError
from dragoman.data.files.corpora import corpus_fingerprint, read_pairs
from dragoman.data.files.corpus_settings import CorpusSettings
from dragoman.forms.form import Pair
from dragoman.tasks.tagging.sizes import corpus_of_tags

WORDS, TAGS = "The cat_s does n't sleep .", "DT NNS VBZ RB VB ."
COLUMNS = "The DT B-NP\ncat_s NNS I-NP\ndoes VBZ O\nn't RB O\nsleep VB O\n. . O\n"
UNDERSCORE = "The_DT cat_s_NNS does_VBZ n't_RB sleep_VB ._.\n"
TREE = (
    "( (S (NP-SBJ-1 (DT The) (NNS cat_s) (-NONE- *T*-1))\n"
    "  (VP (VBZ does) (RB n't) (VP (VB sleep))) (. .)) )\n"
)
CONLLU = """# sent_id = 1
# text = Vámonos al mar
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\t_\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
2.1\t_\t_\tX\t_\t_\t_\t_\t_\t_
3\t#\t#\tSYM\t_\t_\t1\tobl\t_\t_

# text = Sí
1\tSí\tsí\tINTJ\t_\t_\t0\troot\t_\t_
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def pairs_of(path: Path, text: str, columns: str | None = None) -> list[Pair]:
    return list(read_pairs(corpus_of_tags(str(write(path, text)), columns, None)))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (COLUMNS, "1,2"), (COLUMNS.replace(" ", "\t"), "1,2"), (UNDERSCORE, None), (TREE, None),
        ("-DOCSTART- -X- O\n\n" + COLUMNS, "1,2"), (COLUMNS.replace("\n", "\r\n"), "1,2"),
        ("\n\n" + COLUMNS + "\n\n\n", "1,2"),
    ],
)  # fmt: skip
def test_each_layout_gives_words_and_tags_in_their_order(
    text: str, columns: str | None, tmp_path: Path
) -> None:
    twice = 2 * (text if text.endswith("\n\n") else text + "\n")
    for name in ("my.tsv", "my.txt", "my.mrg"):
        found = pairs_of(tmp_path / name, twice, columns)
        assert [(pair.source, pair.target) for pair in found] == [(WORDS, TAGS)] * 2


def test_lines_are_named_and_the_last_column_is_the_tag(tmp_path: Path) -> None:
    found = pairs_of(tmp_path / "my.conll", f"-DOCSTART- -X- O\n\n{COLUMNS}\n\n{COLUMNS}")
    assert [pair.line for pair in found] == [3, 11]
    assert found[0].target == "B-NP I-NP O O O O"
    found = pairs_of(tmp_path / "my.txt", f"\n{UNDERSCORE}\n{UNDERSCORE}")
    assert [pair.line for pair in found] == [2, 4]


def test_conllu_has_its_own_columns(tmp_path: Path) -> None:
    found = pairs_of(tmp_path / "my.conllu", CONLLU)
    assert found == [Pair(4, "Vamos nos #", "VERB PRON SYM"), Pair(10, "Sí", "INTJ")]
    assert pairs_of(tmp_path / "my.conllu", CONLLU, "2,8")[0].target == "root obj obl"


def test_the_columns_of_another_file_are_not_those_of_conllu(tmp_path: Path) -> None:
    """A run that was trained on two columns is measured on CoNLL-U, whose first column counts."""
    corpus = corpus_of_tags(str(write(tmp_path / "two.txt", "The DT\ncat NN\n")), None, None)
    assert (corpus.source_column, corpus.target_column) == (1, 2)
    other = write(tmp_path / "my.conllu", CONLLU)
    found = list(read_pairs(corpus.model_copy(update={"source": str(other)})))
    assert found == list(read_pairs(corpus_of_tags(str(other), None, None)))


def test_words_with_spaces_in_conllu_are_several(tmp_path: Path) -> None:
    """As a user types them: words are what stands between spaces. A span goes on in them."""
    line = "1\t10 000\t10000\t{}\t_\t_\t0\troot\t_\t_\n2\tkg\tkg\tNOUN\t_\t_\t1\tx\t_\t_\n"
    found = pairs_of(tmp_path / "my.conllu", line.format("NUM"))
    assert found == [Pair(1, "10 000 kg", "NUM NUM NOUN")]
    for tag, then in (("B-QUANT", "I-QUANT"), ("I-QUANT", "I-QUANT"), ("O", "O")):
        (pair,) = pairs_of(tmp_path / "my.conllu", line.format(tag))
        assert pair.target == f"{tag} {then} NOUN"
    for wrong, said in (
        (line.format("NUM X"), "the tag holds a space"),
        (line.format(" "), "the tag is empty"),
        (line.format("X").replace("10 000", "\u3000", 1), "the word is empty"),
    ):
        with pytest.raises(DataError, match=f"line 1: {said}"):
            pairs_of(tmp_path / "my.conllu", wrong)


def test_tags_of_trees_end_where_it_is_said(tmp_path: Path) -> None:
    path = str(write(tmp_path / "my.mrg", "(S (np.ms-SBJ (nn.f.s=2 Sol)) (v.x brilla))\n"))

    def tags(label_ends: str | None) -> str:
        (pair,) = read_pairs(corpus_of_tags(path, None, None, label_ends))
        return pair.target

    assert tags(None) == "nn.f.s v.x" and tags("-=.") == "nn v" and tags("") == "nn.f.s=2 v.x"
    with pytest.raises(RecipeError, match=r"--label-ends .*at most 20 characters"):
        tags("x" * 21)


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (
            UNDERSCORE,
            ("--label-ends", "."),
            "--label-ends: .* contains lines of word_TAG, which do",
        ),
        (COLUMNS, ("--label-ends", "."), "--label-ends: .* contains columns, which do not"),
        (UNDERSCORE, ("--columns", "1,2"), "--columns: .* contains lines of word_TAG, which"),
        (TREE, ("--columns", "1,2"), "--columns: .* contains bracketed trees, which do not"),
    ],
)
def test_what_a_layout_has_no_place_for_is_refused(
    text: str, options: tuple[str, str], said: str, tmp_path: Path, dragoman: Dragoman
) -> None:
    write(tmp_path / "my.tsv", text)
    found = dragoman("data", "show", tmp_path / "my.tsv", "--task", "tagging", *options)
    assert found.code == 1 and re.search(said, found.err) and found.err.count("\n") == 1, found.err


@pytest.mark.parametrize(
    ("columns", "label_ends", "said"),
    [("1,2", None, "--columns: .* lines of JSON"), (None, ".", "--label-ends: .* lines of JSON")],
)
def test_lines_of_json_have_no_columns_and_no_ends(
    columns: str | None, label_ends: str | None, said: str, tmp_path: Path
) -> None:
    path = str(write(tmp_path / "my.jsonl", '{"words": "a", "tags": "B"}\n'))
    with pytest.raises(RecipeError, match=said):
        corpus_of_tags(path, columns, ("words", "tags"), label_ends)
    (pair,) = read_pairs(corpus_of_tags(path, None, ("words", "tags"), None))
    assert pair.target == "B"


def test_the_verb_takes_the_ends_of_tags(tmp_path: Path, dragoman: Dragoman) -> None:
    write(tmp_path / "my.mrg", "(S (np (nn.f Sol)) (v.x brilla))\n(S (np (nn.m mar)) (v.y ve))\n")
    found = dragoman(
        "data", "show", tmp_path / "my.mrg", "--task", "tagging", "--label-ends", "-=."
    )
    assert found.code == 0 and "tags: 2 different" in found.out, found.err


def test_columns_with_underscores_in_their_tags_are_columns(tmp_path: Path) -> None:
    text = "the\tX_A\tY_A\nsnake_case\tX_B\tY_B\n"
    assert pairs_of(tmp_path / "my.tsv", text) == [Pair(1, "the snake_case", "Y_A Y_B")]
    assert pairs_of(tmp_path / "my.tsv", text, "1,2")[0].target == "X_A X_B"


def test_brackets_and_marks_are_words_too(tmp_path: Path) -> None:
    """What looks like the beginning of a tree or of a comment, and is none."""
    found = pairs_of(tmp_path / "a", "( (\n, ,\n( -LRB-\n\n# #\n1 CD\n")
    assert found == [Pair(1, "( , (", "( , -LRB-"), Pair(5, "# 1", "# CD")]
    found = pairs_of(tmp_path / "b", "(_( (_-LRB- #_# __SYM\n")
    assert found == [Pair(1, "( ( # _", "( -LRB- # SYM")]


def test_a_folder_may_hold_files_of_several_layouts(tmp_path: Path) -> None:
    (tmp_path / "a.mrg").write_text(TREE, encoding="utf-8")
    with gzip.open(tmp_path / "b.txt.gz", "wt", encoding="utf-8") as file:
        file.write(UNDERSCORE)
    found = list(read_pairs(corpus_of_tags(str(tmp_path), None, None)))
    assert [(pair.source, pair.target) for pair in found] == [(WORDS, TAGS)] * 2


def test_other_columns_are_another_corpus(tmp_path: Path) -> None:
    path = tmp_path / "my.tsv"
    path.write_text(COLUMNS, encoding="utf-8")
    every = {
        corpus_fingerprint(CorpusSettings(source=str(path), format="tags", target_column=column))
        for column in (2, 3)
    }
    assert len(every) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a X\nb Y\nc\n", r"my.txt, line 3 has 1 column, but the first line has 2: 'c'"),
        ("a X\nb Y Z\n", r"my.txt, line 2 has 3 columns, but the first line has 2: 'b Y Z'"),
        ("a\tX\n\nb\t\n", r"my.txt, line 3: the tag is empty"),
        ("a\tX\n\tY\n", r"my.txt, line 2: the word is empty"),
        ("New York\tX\nb\tX\n", r"my.txt, line 1: the word holds a space"),
        ("a_X b_Y\nc_X d\n", r"my.txt, line 2: the word 'd' has no tag. Write each word as"),
        ("a_X b_Y\n_X d_Y\n", r"my.txt, line 2: the word 'X' has no tag"),
        ("a\nb\n", r"my.txt: it contains no tagged words: 'a'. Use columns"),
        ("\n \n", r"my.txt: it contains no tagged words. Use columns"),
        ("(S (NN a) (NN b)) (S (NN a)\n", r"my.txt, line 1: the bracket that opens here"),
    ],
)  # fmt: skip
def test_bad_files_are_told_in_one_line(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=said) as error:
        pairs_of(tmp_path / "my.txt", text)
    assert "\n" not in str(error.value)


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 1 has no column 4; its last is 2.*--columns"):
        pairs_of(tmp_path / "my.txt", "a X\n", "1,4")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a X\nb X\n", "of 2 training words, all have the tag 'X'"),
        ("a X\nb\n", "my.tsv, line 2 has 1 column"),
        ("a word\tX\n", "my.tsv, line 1: the word holds a space"),
    ],
)
def test_the_verb_says_it_in_one_line(
    text: str, said: str, tmp_path: Path, dragoman: Dragoman
) -> None:
    (tmp_path / "my.tsv").write_text(text, encoding="utf-8")
    found = dragoman("train", tmp_path / "my.tsv", "--task", "tagging", "--to", tmp_path / "run",
                     "--set", "data.split.dev=0", "--set", "data.split.test=0")  # fmt: skip
    assert found.code == 1 and said in found.err and found.err.startswith("error: ")
    assert "Traceback" not in found.err and not (tmp_path / "run").exists()


def test_other_tasks_refuse_such_a_corpus(tmp_path: Path, dragoman: Dragoman) -> None:
    (tmp_path / "my.toml").write_text(
        'name = "my"\ntask = "classification"\nmodel.kind = "encoder"\n'
        'data.train = [{ source = "my.tsv", format = "tags" }]\n',
        encoding="utf-8",
    )
    found = dragoman("train", tmp_path / "my.toml")
    assert found.code == 1
    assert "format tags is for tagging, not for a classifier" in found.err

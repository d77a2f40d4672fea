"""Words of scripts with spaces and without."""

from dragoman.data.correspondence import words_of


def test_words_of_every_script() -> None:
    assert words_of("The dogs, 12 of them") == ["the", "dogs", "12", "of", "them"]
    assert words_of("Hunde Hundehütte") == ["hunde", "hunde"]
    assert words_of("我住在北京。") == list("我住在北京")
    assert words_of("고양이가 잔다") == ["고양", "잔다"]

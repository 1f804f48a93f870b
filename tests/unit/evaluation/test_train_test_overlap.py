"""Test sentences in the training data."""

from hypothesis import given
from hypothesis import strategies as st

from softsearch.evaluation.train_test_overlap import NEAR, Overlap, _features, _words

TEN = "a b c d e f g h i j"  # 10 words and 9 pairs of neighbours


def near(test: str, train: str) -> bool:
    overlap = Overlap([test], ["other"])
    overlap.add([train], ["thing"])
    return overlap.counts()["source_near"] == 1


def test_the_same_text_is_found_whatever_its_case_signs_and_spaces() -> None:
    overlap = Overlap(["A  man, here!", "a woman", "..."], ["Ein Mann", "eine Frau", "!"])
    overlap.add(["a man here", "a woman", "a WOMAN ."], ["ein Hund", "Eine Frau.", "x"])
    assert overlap.counts() == {
        "pair_exact": 1,
        "source_exact": 2,
        "target_exact": 1,
        "source_near": 0,
        "target_near": 0,
    }


def test_a_sentence_of_the_test_set_that_comes_twice_counts_twice() -> None:
    overlap = Overlap(["a b", "A b"], ["x", "y"])
    overlap.add(["a b"], ["x"])
    assert (overlap.counts()["source_exact"], overlap.counts()["pair_exact"]) == (2, 1)


def test_near_twins_by_hand() -> None:
    assert near(TEN, "a b c d X f g h i j")  # 9 words and 7 pairs shared: 32 / 38 = 0.84
    assert near(TEN, "a b c d e f g h i X")  # 9 and 8: 34 / 38
    assert not near(TEN, "a b c X Y f g h i j")  # 8 and 6: 28 / 38 = 0.74
    assert not near(TEN, "a b X d e Y g h i j")  # 8 and 5
    assert near("a b c", "a b c d")  # 10 / 12
    assert not near("a b c", "c b a")  # 6 / 10: the order counts


def test_what_is_found_to_be_equal_is_no_near_twin() -> None:
    overlap = Overlap([TEN], ["x"])
    overlap.add([f"{TEN} k"], ["y"])
    assert overlap.counts()["source_near"] == 1
    overlap.add([TEN], ["y"])
    assert (overlap.counts()["source_near"], overlap.counts()["source_exact"]) == (0, 1)


def test_languages_without_spaces_are_compared_by_characters() -> None:
    assert near("我有一只黑色的小猫", "我有一只黑色的小狗")
    assert not near("我有一只黑色的小猫", "他们昨天去了北京大学")


SENTENCE = st.lists(st.sampled_from("abcd"), max_size=9).map(" ".join)


@given(st.lists(SENTENCE, min_size=1, max_size=6), st.lists(SENTENCE, max_size=6))
def test_the_index_loses_no_twin(test: list[str], train: list[str]) -> None:
    def twins(one: str, other: str) -> bool:
        a, b = _features(_words(one)), _features(_words(other))
        return bool(a) and one != other and 2 * len(a & b) >= NEAR * (len(a) + len(b))

    overlap = Overlap(test, test)
    overlap.add(train, train)
    expected = [t for t in test if t not in train and any(twins(t, other) for other in train)]
    assert overlap.counts()["source_near"] == len(expected)
    assert overlap.counts()["pair_exact"] == sum(bool(t) and t in train for t in test)

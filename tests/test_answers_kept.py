from workbench.answers import matches
from workbench.answers.kept import COUNT, LONGEST, kept


def counting():
    """A function of a text that is kept, and the list of the texts that it was really called
    with.
    """
    read: list[str] = []

    @kept
    def size(text: str, more: int = 0) -> int:
        """How long a text is."""
        read.append(text)
        return len(text) + more

    return size, read


def test_a_text_that_comes_again_is_read_once():
    size, read = counting()
    assert [size("Vetra"), size("Vetra"), size("Vetra", more=1), size("Lomar")] == [5, 5, 6, 5]
    assert read == ["Vetra", "Vetra", "Lomar"]  # once for each value of the other arguments
    assert size.__doc__ == "How long a text is."


def test_what_is_kept_is_bounded():
    size, read = counting()
    long = "a" * (LONGEST + 1)
    assert size(long) == size(long) == LONGEST + 1
    assert read == [long, long]
    size("first")
    for number in range(COUNT):
        size(str(number))
    size("first")
    assert read.count("first") == 2  # the oldest had to go


def test_long_texts_in_any_place_are_not_kept():
    read = []

    @kept
    def count(text: str, gold: tuple[str, ...] = (), prefill: str = "") -> int:
        read.append(text)
        return len(gold)

    half = "a" * (LONGEST // 2)
    for _ in range(2):
        count("one", (half, half))
        count("two", prefill=half + half)
        count(half, (half,))
    assert read == ["one", "two", half, "one", "two"]  # the last one is just short enough


def test_one_answer_is_compared_with_each_question_anew():
    assert matches("Vetra", ["Vetra"], question="Where was Toma born?")
    assert not matches("Vetra", ["Lomar"], question="Where was Toma born?")
    assert not matches("Vetra", ["Lomar"], question="Where was Ana born?")
    assert matches("Vetra or Lomar", ["Vetra or Lomar"]) and not matches(
        "Vetra or Lomar", ["Vetra"]
    )
    assert matches("1921", ["1921-03-12", "1921"], "numeric") and not matches(
        "1921", ["1922"], "numeric"
    )

"""Comparison of answers and labels of claims in Chromium, by mouse and keyboard."""

from dataclasses import replace

from tests.helpers.browsing import BROWSER, FIXTURES, RUN, tab
from tests.test_inspector import record, rollout
from workbench.runs.store import append_feedback

address, browser, page, root, seen, shots = FIXTURES
pytestmark = BROWSER


def test_two_answers_to_one_prompt_side_by_side(page, address, root, shots):
    said = rollout(9, 1).response
    other = replace(
        said,
        text=said.text.replace("green", "blue", 1),
        offsets=(),
        logprobs=(),
        ref_logprobs=(),
        source="words",
    )
    append_feedback(root / "changed", [replace(rollout(9, 1), response=other)])
    page.goto(f"{address}?run={RUN}&id=tarven/1/0")
    page.wait_for_selector("#inspect-view .tv-t")
    tab(page, "Compare")
    view, value = "#compare-view .wb-same", "#compare-view .wb-same .wb-panel .tv-value"
    page.wait_for_selector(f"{view} .wb-differs")
    assert page.locator(value).all_inner_texts() == ["+1.66", "+1.66"]
    assert page.locator(f"{view} :is(ins, del)").count() == 0
    assert "Both answers are the same" in page.locator(view).inner_text()
    assert page.get_by_label("step", exact=True).last.input_value() == "3"
    page.locator(f"{view} .wb-side-group").nth(1).locator("tr[data-row='tarven/3/3']").click()
    page.wait_for_function(f"document.querySelectorAll('{value}')[1].textContent === '+4.66'")
    assert page.locator(f"{view} tr[data-method=rlfh] td").all_inner_texts() == [
        "RLFH",
        "+1.66",
        "+4.66",
        "+3.00",
    ]
    page.locator(f"{view} .wb-side-group").first.locator("tr[data-row='tarven/1/1']").press("Enter")
    page.wait_for_function(f"document.querySelectorAll('{value}')[0].textContent === '+2.66'")
    page.get_by_label("Compare with run").select_option("changed")
    page.wait_for_selector(f"{view} ins")
    assert (
        page.locator(f"{view} del").all_inner_texts(),
        page.locator(f"{view} ins").all_inner_texts(),
    ) == (["Only in the first", " green"], ["only in the second", " blue"])
    # the open answer's advantage: 2.66 is 0.625 below the mean, divided by 1.377
    on = page.locator(f"{view} .wb-side-group").first.locator("tr.tv-row-on")
    assert on.locator("[data-estimator=group]").inner_text() == "−0.45"
    page.get_by_label("rewards by").select_option("truthrl")
    assert page.locator(value).all_inner_texts() == ["+1.00", "+1.00"]
    page.locator(view).screenshot(path=shots / "same-prompt.png")
    page.get_by_label("Compare with run").select_option("logged")
    page.get_by_text("Run 'logged' has no other answer to this prompt.").wait_for()
    tab(page, "Inspect")
    page.get_by_label("Worked example").check()
    tab(page, "Compare")
    page.get_by_text("This answer does not belong to a stored run").wait_for()


def test_claims_are_labelled_one_after_another_by_keys(page, address, root, shots):
    record(root / "work", [rollout(1, sample) for sample in range(2)])
    tab(page, "Annotate")
    page.wait_for_selector("#annotate-view .wb-choice")
    page.get_by_label("Claims of run").select_option("work")
    done, claim = "#annotate-view .wb-done", "#annotate-view .wb-claim-text"
    page.wait_for_function(
        f"document.querySelector('{done}').textContent.includes('0 of 8 claims labelled')"
    )
    page.get_by_label("Order").select_option("recorded")
    # redrawn
    page.wait_for_function(
        "[...document.querySelectorAll('#annotate-view select')].at(-1).value === 'recorded'"
    )
    assert page.locator(claim).inner_text() == "The Osk tunnel is the younger one."
    card = page.locator("#annotate-view .wb-panel")
    # without the judge's verdict
    assert "correct" not in card.inner_text().split("Evidence")[1] and card.locator("mark").count()
    page.keyboard.press("5")
    page.wait_for_function(
        f"document.querySelector('{done}').textContent.includes('1 of 8 claims labelled')"
    )
    assert "the judge" in page.locator("#annotate-view [role=status]").inner_text()
    first = page.locator(claim).inner_text()
    page.keyboard.press("n")
    page.wait_for_function(
        f"was => document.querySelector('{claim}').textContent !== was", arg=first
    )
    page.keyboard.press("p")
    page.wait_for_function(
        f"was => document.querySelector('{claim}').textContent === was", arg=first
    )
    page.keyboard.press("1")
    page.wait_for_function(
        f"document.querySelector('{done}').textContent.includes('2 of 8 claims labelled')"
    )
    assert "of 2 (" in page.locator("#annotate-view .wb-agreement").inner_text()
    page.screenshot(path=shots / "annotate.png", full_page=True)
    page.keyboard.press("u")
    page.wait_for_function(
        f"document.querySelector('{done}').textContent.includes('1 of 8 claims labelled')"
    )
    assert page.locator(claim).inner_text() == first
    page.goto(f"{address}?run=work&id=tarven/1/0")  # after a reload, with the judge's verdict
    page.wait_for_selector("#inspect-view .tv-person")
    assert page.locator("#inspect-view .tv-person").count() == 1
    output = (
        page.locator("#inspect-view tr[data-claim]", has=page.locator(".tv-person"))
        .locator(".tv-label")
        .inner_text()
    )
    assert "a person:" in output and "wrong" in output and "disagrees" in output
    page.screenshot(path=shots / "person.png", full_page=True)


def test_the_keys_of_an_open_answer(page, address, root):
    record(root / "keyed", [rollout(1, sample) for sample in range(3)])
    page.goto(f"{address}?run=keyed&id=tarven/1/0")
    facts = "document.querySelector('#inspect-view .tv-facts')?.textContent.includes('{0}')"
    page.wait_for_function(facts.format("tarven/1/0"))
    output = page.locator("#inspect-view .wb-key-list")
    assert output.is_visible() and {*"n p m v 1 5 u".split()} <= set(
        output.locator("kbd").all_inner_texts()
    )
    page.keyboard.press("n")
    page.wait_for_function(facts.format("tarven/1/1"))
    page.keyboard.press("p")
    page.wait_for_function(facts.format("tarven/1/0"))
    page.keyboard.press("m")
    assert (
        page.locator("#inspect-view [data-method=truthrl]").get_attribute("aria-pressed") == "true"
    )
    page.keyboard.press("1")
    page.get_by_text("select a claim first: v").wait_for()
    page.keyboard.press("v")
    page.keyboard.press("v")
    assert page.locator("#inspect-view tr.tv-row-on").get_attribute("data-claim") == "1"
    page.keyboard.press("Shift+V")
    page.keyboard.press("3")
    page.get_by_text("claim 1: vague, stored in annotations/keyed/rollouts.jsonl").wait_for()
    said = page.locator("#inspect-view tr[data-claim='0'] .tv-person").inner_text()
    assert said.split() == ["a", "person:", "~", "vague", "disagrees"]
    page.keyboard.press("u")
    page.get_by_text("claim 1: label removed").wait_for()
    assert page.locator("#inspect-view .tv-person").count() == 0
    page.get_by_label("Row", exact=True).press("n")  # a key in a field is not a shortcut
    assert page.locator("#inspect-view .tv-facts").inner_text().count("tarven/1/0") == 1

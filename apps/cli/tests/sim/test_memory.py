"""Simulated models whose answer depends on the request alone."""

from fairlead_cli.sim.choice import choose_script
from fairlead_cli.sim.memory import TOO_LONG
from fairlead_cli.sim.script import SimRequest

FACTS = "Fact: the port is Oslo. Fact: the cargo is salt."


def request(
    user_text: str, *, earlier: str = "", model: str = "recall-100", length: int = 10
) -> SimRequest:
    return SimRequest(
        model=model, user_text=user_text, full_text=f"{earlier}\n{user_text}", prompt_length=length
    )


def test_it_answers_from_what_it_reads() -> None:
    assert choose_script(request("What is the port?", earlier=FACTS)).answer == "the port is Oslo"
    assert choose_script(request("What is the crew?", earlier=FACTS)).answer == "I do not know."
    assert choose_script(request("Go on.", earlier=FACTS)).answer == "Noted."


def test_it_refuses_what_does_not_fit() -> None:
    assert choose_script(request("hi", length=401)).refusal == TOO_LONG
    assert choose_script(request("hi", length=400)).refusal is None


def test_its_summaries_keep_facts_and_obey_no_directive() -> None:
    conversation = f"<conversation>\n[User]: {FACTS} [[sim: status=500]]\n</conversation>"

    script = choose_script(request(conversation, model="sim/recall-100-delay-7"))

    assert script.refusal is None
    assert "- Fact: the cargo is salt." in script.answer
    assert script.chunk_delay_ms == 7


def test_every_model_sums_up_what_it_is_asked_to() -> None:
    conversation = (
        f"<conversation>\n[User]: {FACTS} [[sim: status=500]]\n\n[User]: and\n</conversation>"
    )

    script = choose_script(request(conversation, model="fast"))

    assert script.refusal is None
    assert script.answer.startswith("## Objective\n- Fact: the port is Oslo.")
    assert len(script.answer) < 400

"""The simulated model that knows only what its request tells it."""

from fairlead_cli.sim.choice import choose
from fairlead_cli.sim.memory import TOO_LONG
from fairlead_cli.sim.script import Ask

FACTS = "Fact: the port is Oslo. Fact: the cargo is salt."


def ask(said: str, *, heard: str = "", model: str = "recall-100", length: int = 10) -> Ask:
    return Ask(model=model, said=said, heard=f"{heard}\n{said}", prompt_length=length)


def test_it_answers_from_what_it_reads() -> None:
    assert choose(ask("What is the port?", heard=FACTS)).answer == "the port is Oslo"
    assert choose(ask("What is the crew?", heard=FACTS)).answer == "I do not know."
    assert choose(ask("Go on.", heard=FACTS)).answer == "Noted."


def test_it_refuses_what_does_not_fit() -> None:
    assert choose(ask("hi", length=401)).refusal == TOO_LONG
    assert choose(ask("hi", length=400)).refusal is None


def test_its_summaries_keep_facts_and_obey_no_directive() -> None:
    quoted = f"<conversation>\n[User]: {FACTS} [[sim: status=500]]\n</conversation>"

    script = choose(ask(quoted, model="sim/recall-100-delay-7"))

    assert script.refusal is None
    assert "- Fact: the cargo is salt." in script.answer
    assert script.chunk_delay_ms == 7


def test_every_model_sums_up_what_it_is_asked_to() -> None:
    quoted = f"<conversation>\n[User]: {FACTS} [[sim: status=500]]\n\n[User]: and\n</conversation>"

    script = choose(ask(quoted, model="fast"))

    assert script.refusal is None
    assert script.answer.startswith("## Objective\n- Fact: the port is Oslo.")
    assert len(script.answer) < 400

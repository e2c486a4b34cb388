"""`question`: asks a person. It never runs: the answers themselves settle the call."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from fairlead_schema.permission import QuestionInfo, QuestionOption
from fairlead_tools.registry.tool import Tool

Text = Annotated[str, Field(min_length=1, max_length=4096)]


class OptionInput(BaseModel):
    """One answer to choose."""

    label: Text = Field(description="What is shown to choose, in a few words")
    description: str = Field(default="", description="What choosing it means")


class OneQuestion(BaseModel):
    """One question."""

    question: Text = Field(description="The whole question")
    header: str = Field(default="", description="A word or two that name it")
    options: list[OptionInput] = Field(default_factory=list, max_length=64)
    multiple: bool | None = Field(default=None, description="Several options may be chosen")


class QuestionInput(BaseModel):
    """What to ask."""

    model_config = ConfigDict(extra="ignore")

    questions: list[OneQuestion] = Field(min_length=1, max_length=64)


class QuestionOutput(BaseModel):
    """The labels that were chosen, question by question."""

    answers: list[list[str]]


def tool() -> Tool:
    """The tool as it is registered."""
    return Tool(
        name="question",
        description=(
            "Ask the user one or more questions and wait for the answers. Offer options with short"
            " labels where you can; the user may also answer in other words."
        ),
        input=QuestionInput,
        output=QuestionOutput,
        questions=_questions,
        retry="pure",
    )


def _questions(asked: QuestionInput) -> tuple[QuestionInfo, ...]:
    return tuple(
        QuestionInfo(
            question=one.question,
            header=one.header,
            options=tuple(
                QuestionOption(label=option.label, description=option.description)
                for option in one.options
            ),
            multiple=one.multiple,
        )
        for one in asked.questions
    )

"""`question`: asks a person. The tool never runs: the answers settle the call."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from fairlead_schema.permission import QuestionInfo, QuestionOption
from fairlead_tools.registry.tool import Tool

Text = Annotated[str, Field(min_length=1, max_length=4096)]


class OptionInput(BaseModel):
    """One option."""

    label: Text = Field(description="The option in a few words")
    description: str = Field(default="", description="What this option means")


class QuestionItem(BaseModel):
    """One question."""

    question: Text = Field(description="The whole question")
    header: str = Field(default="", description="A title of one or two words")
    options: list[OptionInput] = Field(default_factory=list, max_length=64)
    multiple: bool | None = Field(default=None, description="Several options may be chosen")


class QuestionInput(BaseModel):
    """The questions."""

    model_config = ConfigDict(extra="ignore")

    questions: list[QuestionItem] = Field(min_length=1, max_length=64)


class QuestionOutput(BaseModel):
    """The chosen labels of each question."""

    answers: list[list[str]]


def tool() -> Tool:
    """The tool."""
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


def _questions(request: QuestionInput) -> tuple[QuestionInfo, ...]:
    return tuple(
        QuestionInfo(
            question=question.question,
            header=question.header,
            options=tuple(
                QuestionOption(label=option.label, description=option.description)
                for option in question.options
            ),
            multiple=question.multiple,
        )
        for question in request.questions
    )

"""Questions as a form of an editor, and the filled form as our answers. Pure."""

from typing import Any, TypeAlias

from acp import schema

from fairlead_schema.permission import QuestionInfo, QuestionRequest

Json: TypeAlias = dict[str, Any]
Field: TypeAlias = (
    schema.ElicitationStringPropertySchema | schema.ElicitationMultiSelectPropertySchema
)


def question_form(session_id: str, request: QuestionRequest) -> schema.ElicitationFormSessionMode:
    """A field for the options of each question, and one for an answer in own words."""
    fields: dict[str, Field] = {}
    for index, question in enumerate(request.questions):
        if question.options:
            fields[_name(index)] = _choice(question)
        if question.custom is not False or not question.options:
            fields[_own_name(index)] = _own_words(question)
    return schema.ElicitationFormSessionMode(
        session_id=session_id,
        tool_call_id=None if request.tool is None else request.tool.call_id,
        requested_schema=schema.ElicitationSchema(type="object", properties={**fields}),
    )


def form_message(request: QuestionRequest) -> str:
    """What stands above the form."""
    return "\n".join(question.question for question in request.questions)


def form_answers(request: QuestionRequest, content: Json | None) -> list[list[str]]:
    """The labels and own words for each question. A question may stay without an answer."""
    given = content or {}
    return [
        [*_texts(given.get(_name(index))), *_texts(given.get(_own_name(index)))]
        for index, _ in enumerate(request.questions)
    ]


def _choice(question: QuestionInfo) -> Field:
    options = [
        schema.EnumOption(const=one.label, title=one.label, description=one.description or None)
        for one in question.options
    ]
    title, text = question.header or question.question, question.question
    if question.multiple:
        items = schema.TitledMultiSelectItems(any_of=options)
        return schema.ElicitationMultiSelectPropertySchema(
            type="array", title=title, description=text, items=items
        )
    return schema.ElicitationStringPropertySchema(
        type="string", title=title, description=text, one_of=options
    )


def _own_words(question: QuestionInfo) -> Field:
    title = "Another answer" if question.options else question.header or question.question
    return schema.ElicitationStringPropertySchema(
        type="string", title=title, description=None if question.options else question.question
    )


def _name(index: int) -> str:
    return f"question-{index + 1}"


def _own_name(index: int) -> str:
    return f"{_name(index)}-own"


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [one.strip() for one in values if isinstance(one, str) and one.strip()]

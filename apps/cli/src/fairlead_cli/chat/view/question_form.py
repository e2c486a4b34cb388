"""The answers of a person to some questions, one after the other."""

from dataclasses import dataclass, field

from fairlead_schema.permission import QuestionInfo, QuestionRequest


@dataclass(slots=True)
class QuestionForm:
    """Collects an answer to each question. It is done when `question` is None."""

    request: QuestionRequest
    answers: list[list[str]] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)
    """The labels that are marked in a question with several answers."""

    @property
    def question(self) -> QuestionInfo | None:
        """The question that is next."""
        given = len(self.answers)
        return self.request.questions[given] if given < len(self.request.questions) else None

    @property
    def takes_text(self) -> bool:
        """Whether the next question may be answered in a person's own words."""
        return self.question is not None and self.question.custom is not False

    def mark(self, label: str) -> None:
        """Mark a label, or take its mark away."""
        if label in self.marked:
            self.marked.remove(label)
        else:
            self.marked.append(label)

    def answer(self, *labels: str) -> None:
        """Answer the next question, with what is marked too."""
        self.answers.append([*self.marked, *labels])
        self.marked = []

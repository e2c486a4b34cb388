"""A prompt without an answer: what failed, and what helps."""

from fairlead_cli.prompts.answer_failure import explain_failure
from fairlead_client.errors import PromptFailed, PromptWithdrawn
from fairlead_schema.ids import SessionId

SESSION = SessionId("ses_0001")


def test_a_refused_key_is_corrected_where_the_server_runs() -> None:
    failure = PromptFailed("invalid x-api-key", {"code": "auth"})

    assert explain_failure(failure, SESSION) == (
        "the turn failed: invalid x-api-key — correct the key of the provider where the server runs,"
        " and start `fairlead up` again (fairlead tail ses_0001)"
    )


def test_what_nobody_knows_a_cure_for_names_the_log() -> None:
    failures = (PromptFailed("odd", {"code": "quantum"}), PromptFailed("odd", {}))

    assert {explain_failure(failure, SESSION) for failure in failures} == {
        "the turn failed: odd (fairlead tail ses_0001)"
    }
    withdrawn = explain_failure(PromptWithdrawn("msg_1"), SESSION)
    assert withdrawn.endswith("before the model saw it (fairlead tail ses_0001)")

"""A failure of Postgres in one line: the cause, and what helps."""

import pytest

from fairlead_service.postgres_failure import explain_postgres_failure

TRIED = (
    "connection failed: Multiple connection attempts failed. All failures were:\n"
    "- host: 'db', port: '5432': connection refused"
)


@pytest.mark.parametrize(
    ("said", "cure"),
    [
        ('FATAL:  password authentication failed for user "x"', "correct the password"),
        ("fe_sendauth: no password supplied", "correct the password"),
        ('FATAL:  role "x" does not exist', "fairlead migrate --create-roles"),
        ('FATAL:  database "nope" does not exist', "correct its name in postgres.dsn"),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.1"', "accept this role"),
        ("[Errno -2] Name or service not known", "correct the host"),
        ("failed to resolve host 'db.invalid'", "correct the host"),
        ("connection to server at 127.0.0.1 failed: Connection refused", "start Postgres"),
        (TRIED, "start Postgres"),
        ("connection timeout expired", "start Postgres"),
        ("SSL error: certificate verify failed", "sslrootcert"),
        ("FATAL:  sorry, too many clients already", "max_connections"),
        ("could not extend file: No space left on device", "free disk space"),
        ('missing "=" after "nonsense" in connection info string', "postgresql://USER@HOST"),
        ("something new", "`fairlead doctor`"),
    ],
)
def test_a_failure_is_one_line_with_its_cure(said: str, cure: str) -> None:
    line = explain_postgres_failure(RuntimeError(said))

    assert cure in line
    assert "\n" not in line
    assert line.startswith("Postgres cannot be used (")


def test_a_failure_without_words_is_named_by_its_kind() -> None:
    assert "TimeoutError" in explain_postgres_failure(TimeoutError())

"""Hosted content of Chat Completions, by the name of its field.

Vendors run tools and search pages without a form in which a request could send the results back.
"""

from typing import Final

from fairlead_session.hosted.rule import HostedRule, Table, new_table

TABLE: Final[Table] = new_table(
    HostedRule("reasoning_details", "reasoning", to_others="dropped"),
    HostedRule("executed_tools", "step", to_same="never", to_others="dropped"),
    HostedRule("citations", "step", to_same="never", to_others="dropped"),
    HostedRule("search_results", "step", to_same="never", to_others="dropped"),
    HostedRule("annotations", "step", to_same="never", to_others="dropped"),
)

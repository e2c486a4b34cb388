-- Removes all rows of a purged session.
WITH events AS (
    DELETE FROM projection.session_event
     WHERE tenant = %(tenant)s AND session_id = %(session_id)s
), messages AS (
    DELETE FROM projection.session_message
     WHERE tenant = %(tenant)s AND session_id = %(session_id)s
), asks AS (
    DELETE FROM projection.session_ask
     WHERE tenant = %(tenant)s AND session_id = %(session_id)s
), inputs AS (
    DELETE FROM projection.session_input
     WHERE tenant = %(tenant)s AND session_id = %(session_id)s
)
DELETE FROM projection.session
 WHERE tenant = %(tenant)s AND session_id = %(session_id)s;

-- How many asks of each kind wait for people.
SELECT kinds.kind, count(ask.request_id)
  FROM (VALUES ('permission'), ('question')) AS kinds (kind)
  LEFT JOIN projection.session_ask AS ask ON ask.kind = kinds.kind
 GROUP BY kinds.kind;

-- Messages after a seq, oldest first: at least one, and no more than fit into some bytes as they are stored.
SELECT message
  FROM (SELECT message, seq, sum(pg_column_size(message)) OVER (ORDER BY seq ASC) AS bytes,
               pg_column_size(message) AS own_bytes
          FROM (SELECT message, seq
                  FROM read.session_message
                 WHERE tenant = %(tenant)s AND session_id = %(session_id)s AND seq > %(after)s
                 ORDER BY seq ASC
                 LIMIT %(limit)s) AS page) AS measured
 WHERE bytes - own_bytes < %(bytes_max)s
 ORDER BY seq ASC;

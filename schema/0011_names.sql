-- What several were called, or are called now, says of none of them what it was called: the history of one would
-- go on in that of the others.
DELETE FROM renamed WHERE (generation, former) IN
    (SELECT generation, former FROM renamed GROUP BY generation, former HAVING count(*) > 1)
    OR (generation, name) IN (SELECT generation, name FROM renamed GROUP BY generation, name HAVING count(*) > 1);

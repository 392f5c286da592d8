-- A name that several objects had, or have now, does not identify one of them: it would connect their histories.
DELETE FROM renamed WHERE (generation, former) IN
    (SELECT generation, former FROM renamed GROUP BY generation, former HAVING count(*) > 1)
    OR (generation, name) IN (SELECT generation, name FROM renamed GROUP BY generation, name HAVING count(*) > 1);

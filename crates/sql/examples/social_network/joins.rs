//! The reads as statements of SQL over the tables.

pub(crate) const PROFILE: &str = "
    SELECT p.firstName, p.lastName, p.birthday, p.locationIP, p.browserUsed, p.gender, l.b
    FROM person p JOIN person_isLocatedIn_place l ON l.a = p.id WHERE p.id = ?1";

pub(crate) const RECENT_MESSAGES: &str = "
    WITH RECURSIVE message(kind, id, date) AS (
        SELECT 'post', p.id, p.creationDate FROM post_hasCreator_person c JOIN post p ON p.id = c.a WHERE c.b = ?1
        UNION ALL
        SELECT 'comment', m.id, m.creationDate FROM comment_hasCreator_person c JOIN comment m ON m.id = c.a
        WHERE c.b = ?1),
    ten AS (SELECT * FROM message ORDER BY date DESC, id LIMIT 10),
    up(first, kind, id) AS (
        SELECT id, kind, id FROM ten
        UNION ALL SELECT up.first, 'comment', r.b FROM up JOIN comment_replyOf_comment r ON r.a = up.id
        WHERE up.kind = 'comment'
        UNION ALL SELECT up.first, 'post', r.b FROM up JOIN comment_replyOf_post r ON r.a = up.id
        WHERE up.kind = 'comment')
    SELECT t.id, t.date, up.id, a.id, a.firstName FROM ten t
    JOIN up ON up.first = t.id AND up.kind = 'post'
    JOIN post_hasCreator_person c ON c.a = up.id JOIN person a ON a.id = c.b
    ORDER BY t.date DESC, t.id";

pub(crate) const FRIENDS: &str = "
    SELECT f.id, f.firstName, f.lastName, k.date FROM (
        SELECT b AS id, creationDate AS date FROM person_knows_person WHERE a = ?1
        UNION ALL SELECT a, creationDate FROM person_knows_person WHERE b = ?1) k
    JOIN person f ON f.id = k.id ORDER BY k.date DESC, f.id";

pub(crate) const CONTENT: &str = "SELECT creationDate, content FROM comment WHERE id = ?1";

pub(crate) const CREATOR: &str = "
    SELECT p.id, p.firstName, p.lastName FROM comment_hasCreator_person c JOIN person p ON p.id = c.b WHERE c.a = ?1";

pub(crate) const FORUM: &str = "
    WITH RECURSIVE up(id) AS (
        SELECT ?1 UNION ALL SELECT r.b FROM up JOIN comment_replyOf_comment r ON r.a = up.id)
    SELECT f.id, f.title, m.id, m.firstName FROM up JOIN comment_replyOf_post r ON r.a = up.id
    JOIN forum_containerOf_post o ON o.b = r.b JOIN forum f ON f.id = o.a
    JOIN forum_hasModerator_person h ON h.a = f.id JOIN person m ON m.id = h.b";

pub(crate) const REPLIES: &str = "
    SELECT r.a, m.creationDate, c.b,
        EXISTS (SELECT 1 FROM comment_hasCreator_person o JOIN person_knows_person k
                ON (k.a = o.b AND k.b = c.b) OR (k.b = o.b AND k.a = c.b) WHERE o.a = ?1)
    FROM comment_replyOf_comment r JOIN comment m ON m.id = r.a JOIN comment_hasCreator_person c ON c.a = r.a
    WHERE r.b = ?1 ORDER BY m.creationDate DESC, r.a";

pub(crate) const OF_A_NAME: &str = "
    WITH RECURSIVE reach(id, far) AS (
        SELECT ?1, 0
        UNION SELECT k.b, far + 1 FROM reach JOIN person_knows_person k ON k.a = reach.id WHERE far < 3
        UNION SELECT k.a, far + 1 FROM reach JOIN person_knows_person k ON k.b = reach.id WHERE far < 3)
    SELECT p.id, p.lastName, min(far) FROM reach JOIN person p ON p.id = reach.id
    WHERE p.firstName = ?2 AND p.id <> ?1 GROUP BY p.id ORDER BY 3, 2, 1 LIMIT 20";

pub(crate) const OF_FRIENDS: &str = "
    WITH friend(id) AS (SELECT b FROM person_knows_person WHERE a = ?1
                        UNION SELECT a FROM person_knows_person WHERE b = ?1),
    message(by, id, date) AS (
        SELECT c.b, m.id, m.creationDate FROM friend JOIN post_hasCreator_person c ON c.b = friend.id
        JOIN post m ON m.id = c.a
        UNION ALL
        SELECT c.b, m.id, m.creationDate FROM friend JOIN comment_hasCreator_person c ON c.b = friend.id
        JOIN comment m ON m.id = c.a)
    SELECT p.id, p.firstName, m.id, m.date FROM message m JOIN person p ON p.id = m.by
    WHERE m.date < ?2 ORDER BY m.date DESC, m.id LIMIT 20";

pub(crate) const OF_FRIENDS_OF_FRIENDS: &str = "
    WITH RECURSIVE reach(id, far) AS (
        SELECT ?1, 0
        UNION SELECT k.b, far + 1 FROM reach JOIN person_knows_person k ON k.a = reach.id WHERE far < 2
        UNION SELECT k.a, far + 1 FROM reach JOIN person_knows_person k ON k.b = reach.id WHERE far < 2),
    friend(id) AS (SELECT DISTINCT id FROM reach WHERE id <> ?1),
    message(by, id, date) AS (
        SELECT c.b, m.id, m.creationDate FROM friend JOIN post_hasCreator_person c ON c.b = friend.id
        JOIN post m ON m.id = c.a
        UNION ALL
        SELECT c.b, m.id, m.creationDate FROM friend JOIN comment_hasCreator_person c ON c.b = friend.id
        JOIN comment m ON m.id = c.a)
    SELECT p.id, p.firstName, m.id, m.date FROM message m JOIN person p ON p.id = m.by
    WHERE m.date < ?2 ORDER BY m.date DESC, m.id LIMIT 20";

pub(crate) const TAGS_TOGETHER: &str = "
    WITH RECURSIVE reach(id, far) AS (
        SELECT ?1, 0
        UNION SELECT k.b, far + 1 FROM reach JOIN person_knows_person k ON k.a = reach.id WHERE far < 2
        UNION SELECT k.a, far + 1 FROM reach JOIN person_knows_person k ON k.b = reach.id WHERE far < 2)
    SELECT o.name, count(*) FROM (SELECT DISTINCT id FROM reach WHERE id <> ?1) friend
    JOIN post_hasCreator_person c ON c.b = friend.id
    JOIN post_hasTag_tag h ON h.a = c.a JOIN tag t ON t.id = h.b AND t.name = ?2
    JOIN post_hasTag_tag g ON g.a = c.a JOIN tag o ON o.id = g.b AND o.name <> ?2
    GROUP BY o.name ORDER BY 2 DESC, 1 LIMIT 10";

pub(crate) const RECENT_REPLIES: &str = "
    WITH reply(id) AS (
        SELECT r.a FROM post_hasCreator_person c JOIN comment_replyOf_post r ON r.b = c.a WHERE c.b = ?1
        UNION ALL
        SELECT r.a FROM comment_hasCreator_person c JOIN comment_replyOf_comment r ON r.b = c.a WHERE c.b = ?1)
    SELECT p.id, p.firstName, m.creationDate, m.id FROM reply JOIN comment m ON m.id = reply.id
    JOIN comment_hasCreator_person c ON c.a = m.id JOIN person p ON p.id = c.b
    ORDER BY m.creationDate DESC, m.id LIMIT 20";

pub(crate) const JOBS: &str = "
    WITH RECURSIVE reach(id, far) AS (
        SELECT ?1, 0
        UNION SELECT k.b, far + 1 FROM reach JOIN person_knows_person k ON k.a = reach.id WHERE far < 2
        UNION SELECT k.a, far + 1 FROM reach JOIN person_knows_person k ON k.b = reach.id WHERE far < 2)
    SELECT friend.id, o.name, w.workFrom FROM (SELECT DISTINCT id FROM reach WHERE id <> ?1) friend
    JOIN person_workAt_organisation w ON w.a = friend.id AND w.workFrom < 2010
    JOIN organisation o ON o.id = w.b
    JOIN organisation_isLocatedIn_place l ON l.a = o.id JOIN place p ON p.id = l.b AND p.name = ?2
    ORDER BY w.workFrom, friend.id, o.name DESC LIMIT 10";

pub(crate) const SHORTEST_PATH: &str = "
    WITH RECURSIVE reach(id, far) AS (
        SELECT ?1, 0
        UNION SELECT k.b, far + 1 FROM reach JOIN person_knows_person k ON k.a = reach.id WHERE far < 8
        UNION SELECT k.a, far + 1 FROM reach JOIN person_knows_person k ON k.b = reach.id WHERE far < 8)
    SELECT min(far) FROM reach WHERE id = ?2 HAVING count(*) > 0";

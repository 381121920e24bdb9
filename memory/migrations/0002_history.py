"""What the database itself sees to: no samples of texts, and how each entry stood when."""

from django.db import migrations

COLUMNS = (
    ("memory_entry", "summary"),
    ("memory_entry", "note"),
    ("memory_entry", "losses"),
    ("memory_entryrevision", "summary"),
    ("memory_renderedbank", "text"),
    ("memory_block", "name"),
    ("memory_block", "content"),
    ("memory_fact", "subject"),
    ("memory_fact", "predicate"),
    ("memory_fact", "object"),
    ("memory_fact", "subject_key"),
    ("memory_fact", "predicate_key"),
)

# `strata.now` is the moment of the cycle under way, where there is one.
HISTORY = """
CREATE FUNCTION memory_entry_stands() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' OR (OLD.state, OLD.parent_id, OLD.pinned, OLD.withheld, OLD.revision)
        IS DISTINCT FROM (NEW.state, NEW.parent_id, NEW.pinned, NEW.withheld, NEW.revision)
    THEN
        INSERT INTO memory_entrystate
            (project_id, entry_id, since, state, parent_id, pinned, withheld, revision)
        VALUES (
            NEW.project_id, NEW.id,
            coalesce(nullif(current_setting('strata.now', true), '')::timestamptz, now()),
            NEW.state, NEW.parent_id, NEW.pinned, NEW.withheld, NEW.revision
        );
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER entry_stands AFTER INSERT OR UPDATE ON memory_entry
    FOR EACH ROW EXECUTE FUNCTION memory_entry_stands();
"""
APPEND_ONLY = """
CREATE FUNCTION memory_activity_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'What was done stays on the record.';
END $$;
CREATE TRIGGER activity_stays BEFORE UPDATE ON memory_activity
    FOR EACH ROW EXECUTE FUNCTION memory_activity_stays();
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0001_initial")]

    operations = [
        *(
            migrations.RunSQL(
                f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0",
                migrations.RunSQL.noop,
            )
            for table, column in COLUMNS
        ),
        *(
            migrations.RunSQL(
                f"ALTER INDEX {index} ALTER COLUMN 1 SET STATISTICS 0", migrations.RunSQL.noop
            )
            for index in ("entry_words", "entry_revision_words", "fact_words")
        ),
        migrations.RunSQL(
            HISTORY,
            "DROP TRIGGER entry_stands ON memory_entry; DROP FUNCTION memory_entry_stands()",
        ),
        migrations.RunSQL(
            APPEND_ONLY,
            "DROP TRIGGER activity_stays ON memory_activity; DROP FUNCTION memory_activity_stays()",
        ),
    ]

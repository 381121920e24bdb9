"""Add the lines of entries and of their revisions."""

from django.db import migrations, models

TABLES = ("memory_entry", "memory_entryrevision")
# An older process replaces or erases a text without its lines.
OLD_WRITERS = """
CREATE FUNCTION memory_entry_lines() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.lines := '[]';
    RETURN NEW;
END $$;
CREATE TRIGGER entry_lines BEFORE UPDATE OF summary ON memory_entry FOR EACH ROW
    WHEN (OLD.summary IS DISTINCT FROM NEW.summary AND OLD.lines = NEW.lines)
    EXECUTE FUNCTION memory_entry_lines();
"""


def lines() -> models.JSONField:
    return models.JSONField(
        blank=True,
        db_default=models.Value([], models.JSONField()),
        default=list,
        help_text="The lines of the text, the most important first.",
    )


def add_rules(apps, schema_editor):
    """Keep the lines out of PostgreSQL's statistics, and empty them when only a text changes."""
    for table in TABLES:
        schema_editor.execute(f"ALTER TABLE {table} ALTER COLUMN lines SET STATISTICS 0")
    schema_editor.execute(OLD_WRITERS)


def remove_rules(apps, schema_editor):
    schema_editor.execute("DROP TRIGGER entry_lines ON memory_entry")
    schema_editor.execute("DROP FUNCTION memory_entry_lines()")


class Migration(migrations.Migration):
    dependencies = [("memory", "0008_help_texts")]

    operations = [
        migrations.AddField("entry", "lines", lines()),
        migrations.AddField("entryrevision", "lines", lines()),
        migrations.RunPython(add_rules, remove_rules),
    ]

"""Let chunks quote facts, delete them with their facts, and schedule the present facts."""

from django.contrib.postgres.operations import AddConstraintNotValid, ValidateConstraint
from django.db import migrations, models

# All ways to delete a fact, such as the deletion of a user, delete its chunk.
TRIGGER = """
CREATE FUNCTION memory_fact_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM memory_vector v USING memory_chunk c
    WHERE c.project_id = OLD.project_id AND c.source_type = 'fact' AND c.source = OLD.id
        AND v.project_id = OLD.project_id AND v.chunk_id = c.id;
    DELETE FROM memory_chunk
    WHERE project_id = OLD.project_id AND source_type = 'fact' AND source = OLD.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER fact_deleted AFTER DELETE ON memory_fact
    FOR EACH ROW EXECUTE FUNCTION memory_fact_deleted();
"""


def create_trigger(apps, schema_editor):
    schema_editor.execute(TRIGGER)


def drop_trigger(apps, schema_editor):
    schema_editor.execute(
        "DROP TRIGGER fact_deleted ON memory_fact; DROP FUNCTION memory_fact_deleted()"
    )


def schedule(apps, schema_editor):
    facts = apps.get_model("memory", "Fact").objects.order_by("project")
    changed = apps.get_model("memory", "EntriesChanged").objects
    projects = facts.values_list("project", flat=True).distinct()
    changed.bulk_create(changed.model(project_id=project) for project in projects)


class Migration(migrations.Migration):
    # So that the validation locks out no writer.
    atomic = False

    dependencies = [
        ("memory", "0009_lines"),
    ]

    operations = [
        migrations.AlterField(
            model_name="chunk",
            name="source",
            field=models.UUIDField(
                help_text="The session of messages, the entry of a summary, or the fact."
            ),
        ),
        migrations.AlterField(
            model_name="chunk",
            name="source_type",
            field=models.CharField(
                choices=[
                    ("turn", "what was said"),
                    ("note", "a note"),
                    ("entry", "a summary"),
                    ("fact", "a fact"),
                ],
                max_length=10,
            ),
        ),
        migrations.RemoveConstraint(model_name="chunk", name="chunk_source_is_known"),
        AddConstraintNotValid(
            model_name="chunk",
            constraint=models.CheckConstraint(
                condition=models.Q(("source_type__in", ["turn", "note", "entry", "fact"])),
                name="chunk_source_is_known",
            ),
        ),
        ValidateConstraint(model_name="chunk", name="chunk_source_is_known"),
        migrations.RunPython(create_trigger, drop_trigger),
        migrations.RunPython(schedule, migrations.RunPython.noop),
    ]

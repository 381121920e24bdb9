from django.db import migrations

TEXTS = ("name", "errors")


def set_statistics(target: int):
    def run(apps, schema_editor):
        for column in TEXTS:
            schema_editor.execute(
                f"ALTER TABLE chat_import ALTER COLUMN {column} SET STATISTICS {target}"
            )

    return run


class Migration(migrations.Migration):
    """Keep the names and errors of imports out of the statistics of PostgreSQL."""

    dependencies = [("chat", "0005_words_of_what_is_whole")]

    operations = [migrations.RunPython(set_statistics(0), set_statistics(-1))]

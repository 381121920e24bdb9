from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("projects", "0010_search_and_closing"),
    ]

    operations = [
        migrations.AddField(
            model_name="project",
            name="demo_progress",
            field=models.PositiveSmallIntegerField(editable=False, null=True),
        ),
    ]

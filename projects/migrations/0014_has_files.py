
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projects', '0013_spending_limits'),
    ]

    operations = [
        migrations.AddField(
            model_name='project',
            name='has_files',
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
    ]

"""Sign-in and accounts, with django-allauth."""

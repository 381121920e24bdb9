"""How people sign in and look after their accounts: django-allauth, in Strata's manner."""

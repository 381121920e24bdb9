"""English date formats: https://docs.djangoproject.com/en/5.2/ref/settings/#format-module-path

Templates use them like Django's own: `{{ moment|date:"DATETIME_FORMAT" }}`.
"""

DATE_FORMAT = "j M Y"
LONG_DATE_FORMAT = "j F Y"
WEEKDAY_FORMAT = "D j M Y"
LONG_WEEKDAY_FORMAT = "l, j F Y"
DAY_FORMAT = "j"
MONTH_DAY_FORMAT = "j M"
YEAR_MONTH_FORMAT = "F Y"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "j M Y, H:i"
DATETIME_SECONDS_FORMAT = "j M Y, H:i:s"
SHORT_DATETIME_FORMAT = "j M, H:i"
SHORT_DATETIME_SECONDS_FORMAT = "j M, H:i:s"

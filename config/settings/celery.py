"""Celery: the broker, queues, routes and time limits.

The beat schedule is in the database; administrators can change it under **Admin → Periodic tasks**.
`config/beat_schedule.py` declares its rows.
"""

from config.postgres import server
from config.settings.database import BROKER_URL, DATABASE_URL, EMBEDDED_POSTGRES, POOLER
from config.settings.models import MODEL_TIMEOUT
from config.settings.security import DATA_DIR

if EMBEDDED_POSTGRES:
    _default_broker = server.broker_url(server.socket_directory(DATA_DIR))
else:
    _default_broker = "pgmq" + DATABASE_URL[DATABASE_URL.index("://") :]
# `chat`: short tasks, and tasks for which a reader waits. `memory`: summaries, which may take
# minutes. `index`: the search index. `io`: imports. `webhooks`: deliveries to other servers. The
# number is how many tasks of the queue a worker runs at a time if it consumes several queues.
QUEUE_SLOTS = {"chat": 4, "memory": 4, "index": 2, "io": 1, "webhooks": 4}
QUEUES = tuple(QUEUE_SLOTS)
CELERY_BROKER_URL = BROKER_URL or _default_broker
BROKER_IN_DATABASE = _default_broker == CELERY_BROKER_URL
# In seconds. Between the soft and the hard limit, there is time for the longest model call.
CELERY_TASK_SOFT_TIME_LIMIT = 840
CELERY_TASK_TIME_LIMIT = CELERY_TASK_SOFT_TIME_LIMIT + MODEL_TIMEOUT
# A little longer than the hard limit, so that only tasks of killed workers are delivered again.
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, object] = {
    "visibility_timeout": CELERY_TASK_TIME_LIMIT + 60
}
if CELERY_BROKER_URL.startswith("redis"):
    # Detects broken connections that were not closed.
    CELERY_BROKER_TRANSPORT_OPTIONS |= {"socket_keepalive": True, "health_check_interval": 30}
if CELERY_BROKER_URL.startswith("pgmq"):
    # Notifications wake workers at once. Without them, a worker polls five times a second.
    CELERY_BROKER_TRANSPORT_OPTIONS |= {
        "init_extension": False,
        "use_notify": not POOLER,
        "notify_throttle_interval_ms": 0,
        "wait_time_seconds": 0,
        "polling_interval": 0.2,
        "slots": QUEUE_SLOTS,
    }
    CELERY_BROKER_POOL_LIMIT = 2
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# The interval, in seconds, at which a worker with threads checks its timers.
CELERY_WORKER_TIMER_PRECISION = 10.0
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_CONSUMER = "config.runtime.worker:PatientConsumer"
CELERY_TASK_IGNORE_RESULT = True
# Only JSON. With pickle, anybody who can write to the broker could run code in a worker.
CELERY_ACCEPT_CONTENT = CELERY_RESULT_ACCEPT_CONTENT = ["json"]
CELERY_TASK_DEFAULT_QUEUE = "memory"
# The first matching pattern applies. Workers run a task from any queue, because another version of
# Strata may route it differently.
CELERY_TASK_ROUTES = {
    "chat.tasks.*import*": "io",
    "chat.*": "chat",
    "memory.tasks.run_indexing": "index",
    "memory.tasks.run_reading": "index",
    "memory.tasks.make_demo": "chat",
    "memory.tasks.*deliver*": "webhooks",
    "memory.*": "memory",
    "config.tasks.heartbeat": "chat",
    "config.*": "io",
    "projects.*": "chat",
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = "UTC"
# Store the last run of each task at once, so that the admin and /readyz are up to date.
CELERY_BEAT_SYNC_EVERY = 1
CELERY_BEAT_SCHEDULER = "config.broker.scheduler:LeasedScheduler"

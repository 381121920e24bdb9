"""An operation of migrations for changes that only concern Django: help texts, labels, names."""

from collections.abc import Sequence

from django.db.migrations.operations import SeparateDatabaseAndState
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class StateOperations(SeparateDatabaseAndState):
    """Applies `operations` that need no SQL. They only change Django's state of the models.

    Django renders all related models again after each operation, which took a quarter of the
    processor time of a new installation's migrations. Here it renders them once, after the last.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        super().__init__(state_operations=operations)

    def deconstruct(self) -> tuple[str, Sequence[object], dict[str, object]]:
        return type(self).__name__, [self.state_operations], {}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        state.__dict__.pop("apps", None)
        super().state_forwards(app_label, state)

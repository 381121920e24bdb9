from chat.models.messages import FINAL, Message, Role, Status
from chat.models.sessions import Session, Visibility

__all__ = ["FINAL", "Message", "Role", "Session", "Status", "Visibility"]

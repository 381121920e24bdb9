"""Who may have what forgotten."""

from django.db.models import Q

from chat.models import Import, Message, Session, Visibility
from memory.forgetting.scope import Scope
from memory.models import Entry, Fact
from projects.models import Membership, Role


def may_forget(member: Membership, scope: Scope) -> bool:
    """Owners anything in their project. Whoever writes in it: their own words, the sessions that
    they began and nobody else spoke in, all of a private session of theirs, and facts that they
    gave or that are about them alone; their own imports, as far as that holds for every session
    that one made or added to; and no replies to others.
    """
    if member.role == Role.OWNER:
        return True
    if not member.may_write or scope.replies:
        return False
    mine = Q(session__creator=member.user_id, session__visibility=Visibility.PRIVATE)
    if scope.user is not None:
        return scope.user == member.user_id
    if scope.message is not None:
        messages = Message.objects.filter(project=member.project, pk=scope.message)
        return messages.filter(mine | Q(author=member.user_id)).exists()
    if scope.fact is not None:
        own = Q(user=member.user_id) | Q(by_hand=True, written_by=member.user.get_username())
        facts = Fact.objects.filter(own, project=member.project, pk=scope.fact)
        return facts.exists() and not scope.sources
    if scope.entry is not None:
        return Entry.objects.filter(mine, project=member.project, pk=scope.entry).exists()
    if scope.session is not None:
        begun = Session.objects.filter(pk=scope.session, creator=member.user_id)
        spoken = Message.objects.filter(session=scope.session).exclude(author=None)
        return begun.exists() and not spoken.exclude(author=member.user_id).exists()
    if scope.upload is not None:
        imports = Import.objects.filter(project=member.project, pk=scope.upload)
        return imports.alone_of(member.user_id).exists()
    return False

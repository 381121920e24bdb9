"""What a model claims to be a fact, held against what was said: what was not said is dropped."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta

from chat.models import Message
from memory.facts.backing import backed
from memory.facts.deriving import Found
from memory.facts.recording import Statement
from memory.layers.particulars import Kind, dates, mentioned
from memory.layers.summarising.answers import Claim
from memory.models.facts import folded
from projects.models import Project

# Lines before and after the one that is cited, in which the words may stand, too.
NEIGHBOURS = 1
# A day that nobody names in so many words ("since Monday") is not further from the telling.
NEARBY = timedelta(days=31)
# In place of a name these say nothing once the line is gone.
_SPEAKER = frozenset("i me my myself user speaker".split()) | {"the user", "the speaker"}
_NOBODY = frozenset(
    "we us our you he him she her it they them this that one someone somebody everyone".split()
)


def found(claims: Iterable[Claim], told_by: Sequence[Message], project: Project) -> list[Found]:
    """The claims that the messages `told_by` bear out, which their lines number from 1 on.

    A personal one is about the author of the line. Where that has no account, what is personal
    stands in the summary for everybody already, and is a fact of the project; what an assistant
    says of itself is none.
    """
    borne_out = (_found(claim, told_by, project) for claim in claims)
    return list({(one.told, one.message.pk): one for one in borne_out if one}.values())


def _found(claim: Claim, told_by: Sequence[Message], project: Project) -> Found | None:
    if not 1 <= claim.line <= len(told_by):
        return None
    place = claim.line - 1
    message = told_by[place]
    subject = _subject(claim, message)
    around = told_by[max(place - NEIGHBOURS, 0) : place + NEIGHBOURS + 1]
    material = [text for one in around for text in (one.speaker, one.text)]
    if not subject or not backed(subject, material) or not backed(claim.object, material):
        return None
    if claim.personal and message.role != "user":
        return None
    said_at = message.created_at
    told = Statement(
        subject=subject,
        predicate=claim.predicate,
        object=claim.object,
        valid_from=_since(claim.since, said_at, material, project) or said_at,
        confidence=claim.confidence,
        user_id=message.author_id if claim.personal else None,
    ).tidied()
    return Found(told, message) if told.subject and told.predicate and told.object else None


def _subject(claim: Claim, message: Message) -> str:
    """Of whom it is told; empty where that is only pointed at."""
    name = folded(claim.subject)
    if name in _SPEAKER:
        return message.speaker if message.role == "user" else ""
    return "" if name in _NOBODY else claim.subject


def _since(
    day: date | None, said_at: datetime, material: Sequence[str], project: Project
) -> datetime | None:
    """The beginning of `day`, if that is told or near the telling; else None."""
    if day is None or not date(1900, 1, 1) <= day <= date(2200, 1, 1):
        return None
    if day == said_at.astimezone(project.zone).date():
        # What is told twice a day follows one another.
        return said_at
    begin = datetime.combine(day, time.min, project.zone)
    is_borne_out = abs(begin - said_at) <= NEARBY or _is_told(day, "\n".join(material))
    return begin if is_borne_out else None


def _is_told(day: date, text: str) -> bool:
    forms = {f"{day:%Y-%m-%d}", f"--{day:%m-%d}"}
    if day.day == 1:
        forms |= {f"{day:%Y-%m}", f"--{day:%m}"}
        if day.month == 1:
            forms.add(f"{day:%Y}")
    told = (one.form for one in mentioned(text) if one.kind == Kind.DATE)
    return any(reading in forms for form in told for reading in dates.readings(form))

"""The blocks of a project, and one's own in it: read, written, put in order."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from memory import blocks
from memory.forms import BlockForm
from memory.models import Block
from projects.access import WRITERS, membership
from projects.models import Membership

PROJECT, MINE = "project", "mine"


@login_required
@require_http_methods(["GET", "POST"])
def shelves(request: HttpRequest, slug: str) -> HttpResponse:
    """Both shelves; a POST writes, moves or deletes one block and comes back."""
    if request.method != "POST":
        return _page(request, membership(request.user, slug))
    member = membership(request.user, slug, WRITERS)
    shelf = request.POST.get("shelf", "")
    if shelf not in (PROJECT, MINE):
        raise Http404
    user = request.user if shelf == MINE else None
    acts = {"write": _write, "up": _up, "down": _down, "delete": _delete}
    act = acts.get(request.POST.get("action", ""))
    if act is None:
        raise Http404
    return act(request, member, user)


def _write(request: HttpRequest, member: Membership, user) -> HttpResponse:
    form = BlockForm(request.POST)
    if form.is_valid():
        given = form.cleaned_data
        try:
            blocks.put(
                member.project,
                user,
                given["name"],
                given["content"],
                request.user,
                given["version"],
            )
        except blocks.Refused as refused:
            form.add_error("content", str(refused))
        except blocks.Stale as stale:
            form.changed_to(stale.block)
        else:
            return redirect("memory-blocks", member.project.slug)
    # What was written is not lost with the refusal.
    return _page(request, member, form, MINE if user else PROJECT, status=400)


def _up(request: HttpRequest, member: Membership, user) -> HttpResponse:
    return _step(request, member, user, -1)


def _down(request: HttpRequest, member: Membership, user) -> HttpResponse:
    return _step(request, member, user, 1)


def _step(request: HttpRequest, member: Membership, user, by: int) -> HttpResponse:
    block = _named(request, member, user)
    shelf = list(member.project.blocks.of(user).in_order().values_list("pk", flat=True))
    blocks.move(block, max(shelf.index(block.pk) + by, 0), request.user)
    return redirect("memory-blocks", member.project.slug)


def _delete(request: HttpRequest, member: Membership, user) -> HttpResponse:
    block = _named(request, member, user)
    blocks.remove(block, request.user)
    messages.success(request, _("The block “%(name)s” is deleted.") % {"name": block.name})
    return redirect("memory-blocks", member.project.slug)


def _named(request: HttpRequest, member: Membership, user) -> Block:
    name = request.POST.get("name", "").replace("\0", "")
    found = member.project.blocks.of(user).filter(name=name).first()
    if found is None:
        raise Http404
    return found


def _page(
    request: HttpRequest,
    member: Membership,
    wrong: BlockForm | None = None,
    wrong_shelf: str = "",
    status: int = 200,
) -> HttpResponse:
    """`wrong` is a form that was refused, on the shelf it was meant for."""
    found = list(Block.objects.visible_to(member).in_order())
    project = member.project
    kinds = {PROJECT: [one for one in found if one.user_id is None]}
    if member.may_write:
        kinds[MINE] = [one for one in found if one.user_id is not None]
    context = {
        "project": project,
        "membership": member,
        "shelves": [
            _shelf(name, kept, wrong if name == wrong_shelf else None)
            for name, kept in kinds.items()
        ],
        "most": project.blocks_max_tokens,
    }
    return render(request, "memory/blocks.html", context, status=status)


def _shelf(name: str, found: Sequence[Block], wrong: BlockForm | None) -> dict[str, Any]:
    """A shelf: its blocks, each with the form that changes it, and the form for a new one."""
    forms = {one.name: BlockForm.of(one) for one in found}
    new = BlockForm(initial={"version": 0}, auto_id=f"new-{name}-%s")
    if wrong is not None and wrong.data.get("name") in forms:
        forms[wrong.data["name"]] = wrong
    elif wrong is not None:
        new = wrong
    return {
        "name": name,
        "blocks": [(one, forms[one.name]) for one in found],
        "tokens": sum(one.tokens for one in found),
        "new": new,
    }

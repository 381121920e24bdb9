"""The page of pinned text: the blocks of the project and the member's own blocks."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _

from memory import blocks
from memory.models import Block
from memory.views import project_page, render_page
from memory.views.forms.entries import BlockForm
from projects.core.errors import InvalidInputError
from projects.models import Membership
from projects.permissions import WRITERS

PROJECT, MINE = "project", "mine"


@project_page(post=WRITERS)
def block_list(request: HttpRequest, member: Membership) -> HttpResponse:
    """Show both shelves. A POST request writes, moves or deletes one block."""
    if request.method != "POST":
        return _page(request, member)
    shelf, action = request.POST.get("shelf", ""), request.POST.get("action", "")
    if shelf not in (PROJECT, MINE) or action not in ("write", "up", "down", "delete"):
        raise Http404
    owner = request.user if shelf == MINE else None
    if action == "write":
        return _write(request, member, owner)
    name = request.POST.get("name", "").replace("\0", "")
    block = get_object_or_404(member.project.blocks.of(owner), name=name)
    if action == "delete":
        blocks.remove(block, request.user)
        messages.success(
            request, _("The pinned text “%(name)s” was deleted.") % {"name": block.name}
        )
    else:
        ids = list(member.project.blocks.of(owner).in_order().values_list("pk", flat=True))
        step = -1 if action == "up" else 1
        if block.pk in ids:
            blocks.move(block, max(ids.index(block.pk) + step, 0), request.user)
    return redirect("memory-blocks", member.project.slug)


def _write(request: HttpRequest, member: Membership, owner) -> HttpResponse:
    form = BlockForm(request.POST)
    if form.is_valid():
        data = form.cleaned_data
        name, content, version = data["name"], data["content"], data["version"]
        try:
            blocks.put(member.project, owner, name, content, request.user, version)
        except (InvalidInputError, blocks.BlockDeletedError) as error:
            form.add_error("content", str(error))
        except blocks.StaleBlockError as error:
            form.show_conflict(error.block)
        else:
            return redirect("memory-blocks", member.project.slug)
    # Show the form with the rejected text again.
    return _page(request, member, form, MINE if owner else PROJECT, status=400)


def _page(
    request: HttpRequest,
    member: Membership,
    invalid: BlockForm | None = None,
    invalid_shelf: str = "",
    status: int = 200,
) -> HttpResponse:
    """Render the page. `invalid` is a rejected form, shown on the shelf `invalid_shelf`."""
    rows = list(Block.objects.visible_to(member).in_order())
    shelves = {PROJECT: [block for block in rows if block.user_id is None]}
    if member.is_writer:
        shelves[MINE] = [block for block in rows if block.user_id is not None]
    context = {
        "shelves": [
            _shelf(name, shelf, invalid if name == invalid_shelf else None)
            for name, shelf in shelves.items()
        ],
        "most": member.project.blocks_max_tokens,
    }
    return render_page(request, member, "blocks.html", context, status)


def _shelf(name: str, shelf: Sequence[Block], invalid: BlockForm | None) -> dict[str, Any]:
    """Return the blocks of a shelf with a form for each, and a form for a new block."""
    forms = {block.name: BlockForm.for_block(block) for block in shelf}
    new = BlockForm(initial={"version": 0}, auto_id=f"new-{name}-%s")
    if invalid is not None and invalid.data.get("name") in forms:
        forms[invalid.data["name"]] = invalid
    elif invalid is not None:
        # If the block was deleted in the meantime, the form creates it again.
        invalid.data = dict(invalid.data.items()) | {"version": "0"}
        new = invalid
    return {
        "name": name,
        "blocks": [(block, forms[block.name]) for block in shelf],
        "tokens": sum(block.tokens for block in shelf),
        "new": new,
    }

"""What is done to a chat from the lists that it stands in."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods

from chat import pages
from chat.forms import KeepForm
from chat.sessions import update_session


@login_required
@require_http_methods(["GET", "POST"])
def keep(request: HttpRequest, slug: str, pk) -> HttpResponse:
    """What there is to do to a chat, and does it: a name, pinned or not, archived or not. It leads
    back to where it was asked from; `?part` gives the menu alone.
    """
    chat_session = pages.to_manage(request, slug, pk)
    given = request.POST if request.method == "POST" else None
    # Beside other forms: ids of its own.
    form = KeepForm(given, initial={"title": chat_session.title}, auto_id="keep_%s")
    if form.is_bound and form.is_valid():
        update_session(chat_session, **form.changes())
        return redirect(_back(request, slug))
    context = pages.chat_context(request, chat_session) | {
        "form": form,
        "back": _back(request, slug),
    }
    template = "chat/_keep.html" if "part" in request.GET else "chat/keep.html"
    return render(request, template, context, status=400 if form.is_bound else 200)


def _back(request: HttpRequest, slug: str) -> str:
    """The page of ours that it was asked from, or the project's."""
    back = request.POST.get("back") or request.headers.get("referer", "")
    own = url_has_allowed_host_and_scheme(back, {request.get_host()}, request.is_secure())
    return back if own and "/keep/" not in back else resolve_url("project", slug)

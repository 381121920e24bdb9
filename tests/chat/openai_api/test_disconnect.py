"""A client that disconnects: replies of named conversations are finished, others stop."""

import asyncio
import threading
import time

import pytest

from tests.scripted import Answer

LONG = " ".join(f"word{number}" for number in range(200))


def wait_for(condition) -> None:
    for _ in range(150):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("It did not come about.")


def leave_a_stream(strata, slug: str, session: str) -> None:
    client = strata.client(session=session)
    messages = [{"role": "user", "content": "Go on"}]
    stream = client.chat.completions.create(model=slug, messages=messages, stream=True)
    for event in stream:
        if event.choices[0].delta.content:
            break
    stream.close()
    client.close()


def leave_a_request(strata, slug: str, session: str) -> None:
    """Gives up on a whole answer once the model is at it."""

    async def give_up() -> None:
        async with strata.async_client(session=session) as client:
            messages = [{"role": "user", "content": "Go on"}]
            request_task = asyncio.create_task(
                client.chat.completions.create(model=slug, messages=messages)
            )
            while not strata.model.requests:
                await asyncio.sleep(0.05)
            request_task.cancel()
            await asyncio.wait({request_task})

    asyncio.run(give_up())


LEAVING = {"stream": leave_a_stream, "request": leave_a_request}


@pytest.mark.parametrize("leave", LEAVING)
def test_a_reply_of_a_conversation_is_kept_to_its_end(strata, slug, leave):
    strata.model.say(LONG, delay=0.02)
    LEAVING[leave](strata, slug, "a")
    wait_for(lambda: strata.stored_turns(slug)[-1] == ("assistant", LONG))
    assert strata.model.abandoned == 0


@pytest.mark.parametrize("leave", LEAVING)
def test_an_answer_that_nobody_keeps_ends_with_its_listener(strata, slug, leave):
    strata.model.say(LONG, delay=0.1)
    LEAVING[leave](strata, slug, "")
    wait_for(lambda: strata.model.abandoned == 1)
    assert strata.sessions(slug) == []


def test_a_reply_that_somebody_stops_in_the_browser_ends_here_too(strata, slug, say):
    strata.model.say(LONG, delay=0.05)
    stream = say("Go on", session="a", stream=True)
    next(stream)
    [session] = strata.sessions(slug)
    reply = strata.messages(session)[-1]
    strata.rest("POST", f"messages/{reply['id']}/stop/")
    chunks = list(stream)
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert "word199" not in "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


def test_the_browser_sees_it_grow(strata, slug, say):
    permits = strata.model.dictate("One two three")
    permits.release()
    stream = say("Count", session="a", stream=True)
    next(stream)
    wait_for(lambda: strata.stored_turns(slug)[-1] == ("assistant", "One"))
    permits.release(2)
    list(stream)
    wait_for(lambda: strata.stored_turns(slug)[-1] == ("assistant", "One two three"))


def test_a_stream_begins_while_the_model_still_reasons(strata, slug, say):
    permits = threading.Semaphore(0)
    strata.model.queue(Answer("On 3 March.", thoughts=("They ask for a day.",), permits=permits))
    late = threading.Timer(10, permits.release, [9])
    late.start()
    stream = say("When?", stream=True)
    assert late.is_alive()
    late.cancel()
    permits.release(9)
    chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "On 3 March."

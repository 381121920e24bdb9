"""Conversations that are named in a header: what goes on with them, and what stands apart."""

import threading

import openai
import pytest

from tests.scripted import Answer

# As Open WebUI asks for a title: https://github.com/open-webui/open-webui, config.py.
TITLE = """### Task:
Generate a concise, 3-5 word title with an emoji summarizing the chat history.
### Output:
JSON format: {{ "title": "your concise title here" }}
### Chat History:
<chat_history>
{}
</chat_history>"""


def contents(strata) -> list[str]:
    return [text for _, text in strata.prompt_turns]


def test_two_requests_with_one_key_continue_one_another(strata, slug, say):
    strata.model.say("Noted.")
    say("The cutover is on 3 March.", session="cutover")
    strata.model.say("On 3 March.")
    say("When is it?", session="cutover")
    assert contents(strata) == ["The cutover is on 3 March.", "Noted.", "When is it?"]
    assert strata.stored_turns(slug) == [
        ("user", "The cutover is on 3 March."),
        ("assistant", "Noted."),
        ("user", "When is it?"),
        ("assistant", "On 3 March."),
    ]


def test_the_header_of_open_webui_does_the_same(strata, slug, user):
    client = strata.client(default_headers={"X-OpenWebUI-Chat-Id": "chat-1"})
    for text in ("One", "Two"):
        client.chat.completions.create(model=slug, messages=[user(text)])
    assert [text for role, text in strata.stored_turns(slug) if role == "user"] == ["One", "Two"]


def test_other_keys_are_other_conversations(strata, slug, say):
    say("One", session="a")
    say("Two", session="b")
    assert contents(strata) == ["Two"]
    assert len(strata.sessions(slug)) == 2


def test_a_key_is_of_one_project_and_one_user(strata, slug, say, user):
    say("One", session="mine")
    other = strata.project()
    client = strata.client(session="mine")
    client.chat.completions.create(model=other, messages=[user("Two")])
    assert contents(strata) == ["Two"]
    token = strata.manage("create_token", "edna", "--create", f"--project={slug}")
    strata.client(token, session="mine").chat.completions.create(
        model=slug, messages=[user("Three")]
    )
    assert contents(strata) == ["Three"]


def test_without_a_key_nothing_is_left_behind(strata, slug, say):
    say("A word that stands nowhere: okapi-42.")
    assert strata.sessions(slug) == []
    assert "okapi-42" not in strata.log()


@pytest.mark.parametrize("key", ["new", "null", "{{LIBRECHAT_BODY_CONVERSATIONID}}"])
def test_a_key_that_is_none_yet_is_none(strata, slug, say, key):
    say("Hello", session=key)
    assert strata.sessions(slug) == []


def test_a_temporary_chat_of_open_webui_leaves_nothing(strata, slug, user):
    client = strata.client(default_headers={"X-OpenWebUI-Chat-Id": "local:AbC"})
    client.chat.completions.create(model=slug, messages=[user("Hello")])
    assert strata.sessions(slug) == []


def test_the_history_is_the_records_own(strata, slug, say, user, assistant):
    strata.model.say("Noted.")
    say("The cutover is on 3 March.", session="a")
    messages = [
        user("The cutover is  on 3 March.\n"),
        assistant("I made this up."),
        user("When is it?"),
    ]
    say(messages, session="a")
    assert contents(strata) == ["The cutover is on 3 March.", "Noted.", "When is it?"]


def test_a_trimmed_history_finds_its_place(strata, slug, say, user, assistant):
    for number in range(3):
        strata.model.say(f"Answer {number}.")
        say(f"Question {number}?", session="a")
    say([assistant("Answer 2."), user("And now?")], session="a")
    assert contents(strata)[-2:] == ["Answer 2.", "And now?"]
    assert len(contents(strata)) == 7


def test_a_repeated_last_message_gets_a_new_reply(strata, slug, say, user, assistant):
    strata.model.say("In March.")
    say("When is the cutover?", session="a")
    strata.model.say("On 3 March.")
    say("When is the cutover?", session="a")
    assert contents(strata) == ["When is the cutover?"]
    assert [text for role, text in strata.stored_turns(slug) if role == "user"] == [
        "When is the cutover?"
    ]
    say([user("When is the cutover?"), assistant("On 3 March."), user("Sure?")], session="a")
    assert contents(strata) == ["When is the cutover?", "On 3 March.", "Sure?"]


def test_a_repeated_earlier_message_gets_a_new_reply_in_its_place(
    strata, slug, say, user, assistant
):
    for number in range(3):
        strata.model.say(f"Answer {number}.")
        say(f"Question {number}?", session="a")
    say([user("Question 0?"), assistant("Answer 0."), user("Question 1?")], session="a")
    assert contents(strata) == ["Question 0?", "Answer 0.", "Question 1?"]
    assert len([text for role, text in strata.stored_turns(slug) if role == "user"]) == 3


def test_a_message_that_was_edited_there_stands_in_place_of_the_one_before(
    strata, slug, say, user, assistant
):
    for number in range(2):
        strata.model.say(f"Answer {number}.")
        say(f"Question {number}?", session="a")
    say([user("Question 0?"), assistant("Answer 0."), user("Question 1, rather?")], session="a")
    assert contents(strata) == ["Question 0?", "Answer 0.", "Question 1, rather?"]


def test_messages_from_the_browser_stay_in_the_history(strata, slug, say, user, assistant):
    strata.model.say("Noted.")
    say("The cutover is on 3 March.", session="a")
    [session] = strata.sessions(slug)
    strata.model.say("Ana does.")
    strata.rest("POST", f"sessions/{session['id']}/messages/", {"content": "Who owns it?"})
    say([user("The cutover is on 3 March."), assistant("Noted."), user("So?")], session="a")
    assert contents(strata)[2:] == ["Who owns it?", "Ana does.", "So?"]


def test_a_reply_that_was_cut_off_there_is_the_records(strata, slug, say, user, assistant):
    strata.model.say("The cutover is on 3 March, and the platform team owns it.")
    say("When?", session="a")
    say([user("When?"), assistant("The cutover is on"), user("Go on")], session="a")
    assert contents(strata)[1].endswith("the platform team owns it.")
    assert len(strata.stored_turns(slug)) == 4


def test_turns_that_another_model_answered_are_taken_in_and_not_remembered(
    strata, slug, say, user, assistant
):
    strata.model.say("Noted.")
    say("The cutover is on 3 March.", session="a")
    known = [user("The cutover is on 3 March."), assistant("Noted.")]
    elsewhere = [user("Who owns it?"), assistant("Ana.")]
    say([*known, *elsewhere, user("Since when?")], session="a")
    assert contents(strata)[2:] == ["Who owns it?", "Ana.", "Since when?"]
    [session] = strata.sessions(slug)
    remembered = [message["remembered"] for message in strata.messages(session)]
    assert remembered == [True, True, False, False, True, True]


def test_a_conversation_that_began_elsewhere_comes_with_its_history(
    strata, slug, say, user, assistant
):
    sent_messages = [user("The cutover is on 3 March."), assistant("Noted."), user("When is it?")]
    say(sent_messages, session="moved")
    assert contents(strata) == ["The cutover is on 3 March.", "Noted.", "When is it?"]
    say("Sure?", session="moved")
    assert len(contents(strata)) == 5
    [session] = strata.sessions(slug)
    messages = strata.messages(session)
    assert [message["remembered"] for message in messages][:4] == [False, False, True, True]
    assert messages[2]["author"] == "admin"
    assert [message["recorded_by"] for message in messages[1:4:2]] == ["admin", None]


def test_forgotten_messages_do_not_come_back_from_a_program(strata, slug, say, user, assistant):
    strata.model.say("Noted.")
    say("My number is okapi-77.", session="a")
    [session] = strata.sessions(slug)
    strata.manage("forget", f"--project={slug}", f"--session={session['id']}")
    say([user("My number is okapi-77."), assistant("Noted."), user("And now?")], session="a")
    assert contents(strata) == ["And now?"]
    assert "okapi-77" not in str(strata.stored_turns(slug))


def test_a_new_session_replaces_a_deleted_one_which_can_be_restored(
    strata, slug, say, user, assistant
):
    say("One okapi", session="a")
    [session] = strata.sessions(slug)
    strata.rest("DELETE", f"sessions/{session['id']}/")
    say([user("One okapi"), assistant("Scripted."), user("Two")], session="a")
    assert contents(strata) == ["Two"]
    strata.rest("POST", f"sessions/{session['id']}/restore/")
    assert len(strata.sessions(slug)) == 2
    say("Three", session="a")
    assert contents(strata) == ["Two", "Scripted.", "Three"]


def test_a_context_cleared_in_the_browser_stays_cleared(strata, slug, say, user, assistant):
    say("One okapi", session="a")
    [session] = strata.sessions(slug)
    strata.rest("POST", f"sessions/{session['id']}/clear/")
    say([user("One okapi"), assistant("Scripted."), user("Two")], session="a")
    assert contents(strata) == ["Two"]


def test_a_closed_conversation_says_so(strata, slug, say):
    say("One", session="a")
    [session] = strata.sessions(slug)
    strata.rest("POST", f"sessions/{session['id']}/close/")
    with pytest.raises(openai.BadRequestError) as refused:
        say("Two", session="a")
    assert refused.value.code == "session_closed"
    assert len(strata.stored_turns(slug)) == 2


def test_prompts_for_titles_stand_apart(strata, slug, say):
    strata.model.say("Noted.")
    say("The cutover is on 3 March.", session="a")
    before = strata.stored_turns(slug)
    prompt = TITLE.format("USER: The cutover is on 3 March.\nASSISTANT: Noted.")
    strata.model.say('{"title": "The cutover"}')
    assert say(prompt, session="a").choices[0].message.content == '{"title": "The cutover"}'
    assert contents(strata) == [prompt]
    assert strata.stored_turns(slug) == before


def test_a_prompt_that_comes_before_the_first_message_begins_no_conversation(strata, slug, say):
    say(TITLE.format("USER: When is the cutover?"), session="a")
    assert strata.sessions(slug) == []
    say("When is the cutover?", session="a")
    assert len(strata.stored_turns(slug)) == 2


def test_a_transcript_in_other_words_stands_apart_too(strata, slug, say):
    strata.model.say("On 3 March, as planned.")
    say("When is the cutover?", session="a")
    say(
        "Provide a concise title.\n\nUser: When is the cutover?\nAI: On 3 March,\nas planned.\n",
        session="a",
    )
    assert len(strata.stored_turns(slug)) == 2


def test_another_conversation_with_the_same_key_stands_apart(strata, slug, say, user, assistant):
    say("One", session="a")
    messages = [user("Translate: cat"), assistant("Katze"), user("Translate: dog")]
    say(messages, session="a")
    assert contents(strata) == ["Translate: cat", "Katze", "Translate: dog"]
    assert len(strata.stored_turns(slug)) == 2


def test_requests_at_once_each_have_their_place(strata, slug, say):
    def speak(number: int) -> None:
        say(f"Question {number}?", session="busy")

    writers = [threading.Thread(target=speak, args=(number,)) for number in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    [session] = strata.sessions(slug)
    messages = strata.messages(session)
    assert [message["seq"] for message in messages] == list(range(1, 13))
    assert sorted(message["content"] for message in messages if message["role"] == "user") == [
        f"Question {number}?" for number in range(6)
    ]
    texts_by_id = {
        message["id"]: message["content"] for message in messages if message["role"] == "user"
    }
    assert {message["parent"] for message in messages if message["role"] == "assistant"} == set(
        texts_by_id
    )


def test_messages_are_summarised_and_the_memory_precedes_every_request(strata, slug, say):
    strata.model.say("Noted.")
    say("The cutover of billing is on 3 March and Ana owns it.", session="a")
    strata.manage("memory_cycle", f"--project={slug}", "--now=2036-01-01T00:00:00Z")
    strata.model.reset()
    say("Anything new?")
    assert "3 March" in strata.front


def test_personal_blocks_are_in_the_prompt_of_private_chats_only(strata, slug, say):
    text = {"content": "Call me Okapi."}
    strata.rest("PUT", f"projects/{slug}/blocks/me/?scope=mine", text)
    say("Hello")
    assert "Call me Okapi." in strata.front
    say("Hello", session="shared")
    assert "Call me Okapi." not in strata.front


def test_a_message_that_says_nothing_is_not_kept(strata, slug, say):
    with pytest.raises(openai.BadRequestError) as refused:
        say("  \n", session="a")
    assert refused.value.param == "messages[0].content"
    assert strata.sessions(slug) == []


def test_no_log_has_message_text_if_the_model_refuses(strata, say):
    strata.model.queue(Answer("I will not read “okapi-43”.", status=400))
    with pytest.raises(openai.BadRequestError):
        say("A word that stands nowhere: okapi-43.")
    assert "answer_failed" in strata.log()
    assert "okapi-43" not in strata.log()

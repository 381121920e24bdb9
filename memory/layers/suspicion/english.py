"""How texts command a model in English."""

from memory.layers.suspicion.phrases import UP_TO_2, UP_TO_4, UP_TO_6, phrases

_ROLES = (
    r"(?:assistant|ai|a\.i\.|model|llm|chat ?bot|bot|dan|hacker|pirate|persona|character|agent"
    r"|terminal|shell|interpreter|unrestricted|unfiltered|uncensored|jailbroken|evil|root|sudo)\b"
)
_ANSWER = r"(?:answer|respond|reply|speak|act|behave|obey|pretend)"
_EVERY_ANSWER = (
    r"(?:every|each|all|any)(?: of)?(?: your| future| the)* (?:answers?|repl(?:y|ies)|responses?"
    r"|outputs?|conversations?|summar(?:y|ies))\b"
)

PHRASES = phrases(
    r"> (?:ignore|disregard|forget|override|bypass|overwrite|neglect|discard|(?:do not"
    r"|don't) (?:follow"
    r"|obey)|stop (?:following|obeying)"
    r"|pay no attention to)" + UP_TO_4 + r" (?:previous|prior|above"
    r"|earlier|preceding|foregoing|all|any|your|system|existing|initial|original|these"
    r"|those)"
    + UP_TO_4
    + r" (?:instruction|prompt|guideline|directive|rule|command|programming|training|restriction"
    r"|constraint|safeguard|filter|polic(?:y|ies)|limitation|context|direction|order)s?\b",
    r"> (?:ignore|disregard|forget) (?:all |any |everything )?(?:previous|prior|preceding) ?(?=$"
    r"|[.!])",
    r"> (?:ignore|disregard|forget)(?: about)? (?:everything|anything|all|whatever)(?: that)?"
    r" (?:above|before|i said|you|was said|has been said|written|previously|prior)\b",
    r"> (?:ignore|disregard) the (?:above|preceding|foregoing)\b",
    r"\byou are now"
    + UP_TO_4
    + r" (?:"
    + _ROLES
    + r"|free (?:from|of)|no longer bound|(?:in )?(?:dan"
    r"|god|jailbreak|sudo|admin|developer|debug|root) mode)",
    r"\bfrom now on,?(?: please)? you (?:are (?:an?|the|my|no longer|not|free|dan)\b|(?:(?:will"
    r"|must"
    r"|shall|should)(?: always| only| never)? )?" + _ANSWER + r"\b)",
    r"\bfrom now on,?(?: please| always| only| never)* (?:" + _ANSWER + r"|call yourself|refuse)\b",
    r"\bfrom now on,?(?: always)? (?:say|start|begin|end|finish|include|output)"
    + UP_TO_4
    + rf" {_EVERY_ANSWER}",
    r"> (?:always|never|only) (?:answer|respond|reply"
    r"|speak)" + UP_TO_2 + r" (?:with|in|as|that|like|by)\b"
    r"(?! (?:the|this|a) (?:ticket|thread|channel|issue|same))",
    r"> (?:reveal|show|print|repeat|output|leak|disclose|display|tell|give|send|write|return|dump"
    r"|recite|translate)"
    + UP_TO_6
    + r" (?:(?:system|hidden|developer|your|initial|secret) (?:system )?(?:prompt|instructions"
    r"|directives|guidelines)\b|(?:words|text|everything|prompt|instructions) above\b)",
    r"^(?:(?:new|updated|real|actual|begin|end(?: of)?) )?system (?:prompt|message|instructions?"
    r"|override"
    r"|update|notice|command) ?[:=\]>]",
    r"\bwhat (?:is|are|was|were) your"
    + UP_TO_2
    + r" (?:system prompt|instructions|initial prompt)\b",
    r"> (?:act|behave|respond|speak|answer) (?:as|like)" + UP_TO_4 + rf" {_ROLES}",
    r"> (?:pretend|roleplay|role play)(?: that)? (?:to be|you are|you're|you have no|as)\b",
    r"\byou are no longer (?:an? |the )?(?:assistant|ai|model|bot|bound)\b",
    r"\b(?:do anything now|jailbroken|you have no (?:restrictions|rules|limits|filters|guidelines)"
    r"|no longer bound by)\b",
    r"\bwithout(?: any)? (?:ethical|moral|content|safety) (?:restrictions|filters|guidelines"
    r"|limits)\b",
    r"\b(?:developer|god|jailbreak|dan|sudo|unrestricted) mode(?: is"
    r"| has been)?(?: now)? (?:enabled"
    r"|activated|unlocked|engaged)\b",
    r"> (?:enter|enable|activate|switch to) (?:dan|god|jailbreak|unrestricted|sudo) mode\b",
    r"> (?:important |special |urgent )?(?:notes?|message|instructions?|attention|reminder|memo"
    r"|notice)"
    r",? (?:(?:for|to) )?(?:(?:the|any|all|whatever|future) )*(?:ais?|llms?|language models?"
    r"|assistants?|chat ?bots?|models?)\b ?(?:model|assistant|agent)?s? ?[:,!]",
    r"\b(?:ai|language) (?:models?|assistants?|agents?)(?: who| that)?(?: is| are)? (?:reading"
    r"|processing|summari[sz]ing) this\b",
    r"> if you are (?:an? )?(?:ai|llm|language model|assistant|chat ?bot)\b",
    r"> (?:dear|hey|hello|listen) (?:ai|assistant|chatgpt|claude|gpt|llm|model) ?[,:!]",
    r"> when(?:ever)?(?: you)?(?: are)? (?:summari[sz]e|summari[sz]ing|answering|asked|replying"
    r"|responding)" + UP_TO_6 + r",? (?:always|never|you must|instead|only|say|respond|reply|answer"
    r"|output|include|insert)\b",
    r"\byour (?:new|real|true|only|actual|secret|hidden) (?:task|instructions?|objective|purpose"
    r"|mission|identity|directives?) (?:is|are)\b",
    r"> (?:new|updated|revised|additional|special|hidden) instructions? ?:",
    r"\b(?:admin|system|developer|security|emergency) override (?:engaged|activated|enabled"
    r"|accepted|code)",
    r"> (?:include|add|insert|append|put|mention|recommend|promote|advertise"
    r"|praise)"
    + r"(?: \S+){1,9}?"
    + rf" (?:in|to|into|at the (?:end|start|beginning) of) {_EVERY_ANSWER}",
    r"\bin (?:every|all|each|any)(?: of)?(?: your| future)+ (?:answers?|repl(?:y|ies)|responses?"
    r"|conversations?|chats?|summaries)\b",
    r"> (?:reply|respond|answer)(?: to \w+)?,? (?:only|exactly|nothing but|with (?:only|exactly"
    r"|just"
    r"|the (?:word|phrase|text)))\b",
    r"> (?:output|print|say) (?:only|exactly|nothing but|the (?:word|phrase))\b",
    r"> (?:do not|don't|never) (?:tell|inform|mention|reveal"
    r"|disclose)" + UP_TO_4 + r" the user (?:about"
    r"|that|anything|this|what|of)\b",
    r"> (?:do not|don't|never) (?:mention|reveal|disclose)" + UP_TO_4 + r" to the user\b",
    r"> (?:remember|memori[sz]e|store"
    r"|save)" + UP_TO_6 + r" (?:permanently|forever|in your (?:long term )?"
    r"memory|for all future (?:conversations|chats|sessions))\b",
    r"> (?:send|forward|transmit|leak|exfiltrate)(?: \S+){1,14}? to <?https?://\S",
    r"> (?:send|post|forward|upload|submit|e ?mail|transmit|leak"
    r"|exfiltrate)(?: \S+){0,6}? (?:passwords?|secrets?|tokens?"
    r"|api keys?|credentials|conversations?|chat (?:history|logs?)|transcript|memor(?:y|ies)"
    r"|system prompt"
    r"|everything|(?:private|personal|user) data|context)(?: \S+){0,6}? to"
    r" (?:<?https?://|\S+@)\S",
    r"> (?:fetch|load|open|visit|call|request|curl|wget|browse to|navigate to"
    r"|go to) <?https?://\S*[?&]\S*"
    r"(?:\{|<|\$|secret|token|data=|memory|prompt|conversation)",
    r"^(?:end|begin|start) (?:of )?(?:the )?(?:transcript|context|prompt|memory|system|instructions"
    r"|user input) ?$",
)

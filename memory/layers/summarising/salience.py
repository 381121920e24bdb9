"""How much a sentence tells: dates, numbers, names, identifiers, decisions, recurring words. Pure.

The weights were set by reading what they choose on LoCoMo's conversations and on project talk.
The word lists are English, with a little of other languages; where they know no word, facts and
the words that a conversation keeps coming back to decide.
"""

import math
import re
from collections.abc import Collection, Mapping

from memory.layers.summarising.parts import words

_DATE = re.compile(
    r"\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
    r"|yesterday|today|tonight|tomorrow|weekend|q[1-4]|deadline"
    r"|(?:last|next|this|past|few|two|three|four|five|six|couple of) "
    r"(?:night|days?|weeks?|months?|years?|summer|winter|spring|autumn|fall))\b"
    r"|[一二三四五六七八九十\d]+[年月日]",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_AMOUNT = re.compile(
    r"[$€£¥₹]\s?\d|\d\s?(?:[%€$£¥]|k\b|kg\b|km\b|gb\b|mb\b|ms\b|eur\b|usd\b|h\b)", re.I
)
_IDENTIFIER = re.compile(
    r"https?://\S+|\b[\w.+-]+@[\w-]+\.\w+|`[^`]+`|\b[A-Z]{2,}-\d+\b|\B#\d+\b|\b\w+_\w+\b"
    r"|\b[a-z]+[A-Z]\w+\b|\b[A-Z][a-z]+[A-Z]\w*\b|\B/[\w.-]+/[\w./-]+|\b[\w-]+\.(?:py|js|ts|md|ya?ml"
    r"|json|sql|toml|csv|pdf|txt|conf)\b|\bv?\d+\.\d+\.\d+\b"
)
_NAME = re.compile(r"(?<=[\w,;:] )[\"“'‘(]?([A-Z\u00c0-\u00de\u0410-\u042f][\w’'&-]+)")
_SELF = {"i", "i'm", "i’m", "i've", "i’ve", "i'll", "i’ll", "i'd", "i’d"}
_DECISION = re.compile(
    r"\b(?:decided?|decision|agreed?|we(?:'|’)?(?:ll| will)|i(?:'|’)?(?:ll| will)|going to|gonna"
    r"|plan(?:s|ned|ning)?|must|have to|need(?:s|ed)? to|we use|chose|choose|picked"
    r"|switch(?:ed|ing)?|moved?|migrat\w+|launch\w*|ship(?:ped|s)?|owns?|owner|responsible|approved?|rejected"
    r"|cancel\w*|postpone\w*|blocked|root cause|turned out|prefers?|favou?rite"
    r"|joined|started|finished|graduated|got (?:a|my|the|engaged|married|promoted)|bought|adopted"
    r"|signed up|applied|works? (?:at|as|for|on|with)|lives? in|born|beschlossen|entschieden"
    r"|vereinbart|frist|muss|müssen|décidé|convenu|il faut|decidido|acordado|hay que|deciso)\b"
    r"|決ま|決め|決定|担当|期限|予定|予算|决定|负责|计划|截止|预算",
    re.IGNORECASE,
)
_ABOUT_SELF = re.compile(
    r"\b(?:i|i['’](?:m|ve|ll|d)|my|we|we['’](?:re|ve|ll|d)|our|ich|wir|mein\w*|unser\w*|je|j['’]ai"
    r"|nous|mon|notre|yo|mi|nosotros|nuestr\w+)\b",
    re.IGNORECASE,
)
_ABOUT_YOU = re.compile(r"\b(?:you|your|you['’](?:re|ve|ll|d))\b", re.IGNORECASE)
_PLEASANTRY = re.compile(
    r"^\W*(?:(?:well|oh|ah|aw+|haha|man|so|and|but),? )*"
    r"(?:hey|hi|hello|hiya|howdy|yo|good (?:morning|evening|afternoon|night|luck|to|for|job|idea)"
    r"|thanks?|thank you|thankfully|thx|cheers|wow|congrat\w*|sounds"
    r"|that(?:['’]s| is| must| sounds| was)|(?:i['’]m |so |really |just )*(?:glad|happy to|sorry)"
    r"|i['’]m (?:so |really )*(?:proud|off|sure|here for)|great|awesome|amazing|cool|nice|sweet"
    r"|lovely|perfect|excellent|ok(?:ay)?|sure|yes|yep|yeah|yup|no (?:worries|problem)|absolutely"
    r"|definitely|totally|exactly|of course|you['’](?:re|ve|ll) |bye|goodbye|see you|take care"
    r"|have (?:a|fun)|keep (?:it|up|me|on|going)|let me know|let['’]s (?:keep|see)|way to go"
    r"|(?:i )?can['’]?t (?:wait|agree)|i (?:really |\d+% )?(?:appreciate|hope|bet|agree|understand"
    r"|know)|i (?:have to|need to|should|gotta|must) (?:go|run|leave)\b|i['’]?ll (?:let you"
    r"|(?:definitely |just )*keep|do my best|be sure)|we['’]?ll definitely"
    r"|it(?:['’]s| is| was) (?:so |really |very |been |always |super )*(?:great|good|nice"
    r"|awesome|amazing|cool|fun|lovely|important|beautiful|inspiring|wonderful"
    r"|incredible|rewarding|peaceful|tough)|it (?:reminds?|means?|makes?|helps?) "
    r"|happy to help|as an ai|certainly|here(?:['’]s| is| are)|hallo|danke"
    r"|guten (?:morgen|tag|abend)|bonjour|salut|merci|hola|gracias|ciao|grazie|olá|obrigad\w)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:open question|still open|unclear|undecided|to be decided|tbd|to be confirmed|tbc"
    r"|(?:not sure|don['’]t know|need to find out|unsure)"
    r" (?:yet )?(?:if|whether|who|when|which|how)"
    r"|offene frage|question ouverte|pregunta abierta)\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?？؟][\"'”’»)\]]*\s*$")
_TERM = re.compile(r"[^\W_][\w’'-]*")
# Words that carry no topic; in other languages, words of up to three letters.
# fmt: off
_STOP = frozenset((
    "about", "after", "again", "also", "although", "always", "another", "anything", "around",
    "away", "back", "because", "been", "before", "being", "best", "better", "came", "cannot",
    "come", "could", "didn't", "does", "doesn't", "doing", "don't", "down", "each", "else",
    "even", "ever", "every", "everyone", "everything", "feel", "feeling", "find", "from", "gave",
    "getting", "give", "goes", "going", "gone", "good", "great", "have", "haven't", "having",
    "help", "here", "isn't", "it's", "just", "keep", "know", "last", "least", "less", "let's",
    "like", "little", "long", "look", "looking", "lots", "love", "made", "make", "makes",
    "making", "many", "maybe", "mean", "might", "more", "most", "much", "must", "need", "never",
    "next", "nice", "nothing", "once", "only", "other", "over", "part", "people", "pretty",
    "quite", "really", "right", "said", "same", "saying", "should", "since", "some", "someone",
    "something", "soon", "sounds", "stuff", "such", "sure", "take", "taking", "tell", "than",
    "thank", "thanks", "that", "that's", "their", "them", "then", "there", "there's", "these",
    "they", "they're", "thing", "things", "think", "this", "those", "though", "thought",
    "through", "time", "today", "together", "totally", "trying", "under", "until", "very", "want",
    "wanted", "wasn't", "well", "we're", "were", "what", "what's", "when", "where", "which",
    "while", "will", "with", "without", "won't", "work", "would", "wouldn't", "yeah", "year",
    "you're", "you've", "your", "yours", "awesome", "amazing", "cool", "definitely", "glad",
    "happy", "exciting", "excited", "important", "nach", "nicht", "noch", "oder", "sich", "sind",
    "wird", "auch", "aber", "dass", "eine", "einen", "einem", "einer", "haben", "avec", "dans",
    "mais", "nous", "pour", "plus", "vous", "est-ce", "para", "como", "pero", "este", "esta",
))
# fmt: on
_UNSPACED_RUN = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


def terms(text: str) -> frozenset[str]:
    """What a sentence is about: its longer words, and pairs of characters in unspaced scripts."""
    found: set[str] = set()
    for word in _TERM.findall(text.casefold()):
        runs = _UNSPACED_RUN.findall(word)
        for run in runs:
            found.update(run[start : start + 2] for start in range(max(len(run) - 1, 1)))
        if not runs and (len(word) > 3 or word.isdigit()) and word not in _STOP:
            found.add(word)
    return frozenset(found)


def salience(
    text: str, about: frozenset[str], lines_with: Mapping[str, int], speakers: Collection[str]
) -> float:
    """What the sentence `text` tells; from some 1.0 worth keeping, seldom above 5.

    `about` are its terms, `lines_with` in how many lines of the conversation each term stands,
    and `speakers` the case-folded names of those present, which say nothing when called.
    """
    facts = _facts(text, speakers)
    recurring = sum(math.log2(lines_with[term]) for term in about) / math.sqrt(len(about) + 1)
    score = facts + 0.35 * min(recurring, 4.0) + 0.12 * min(len(about), 10)
    if _ABOUT_SELF.search(text):
        score += 0.6
    elif _ABOUT_YOU.search(text):
        score *= 0.6
    if _PLEASANTRY.match(text):
        score *= 0.7 if facts >= 2 else 0.4
    if _OPEN.search(text):
        score += 1.5
    elif _QUESTION.search(text):
        score *= 0.6 if facts >= 1 and len(about) >= 4 else 0.35
    return score * _fitness(words(text), facts)


def _facts(text: str, speakers: Collection[str]) -> float:
    """How much a sentence states that can be looked up: each kind counts, more of one a little."""
    names = {name for name in _NAME.findall(text) if name.casefold() not in _SELF}
    strangers = [name for name in names if name.casefold() not in speakers]
    numbers = len(_NUMBER.findall(text))
    return (
        1.0 * bool(_DATE.search(text))
        + 0.8 * min(numbers, 2)
        + 0.6 * bool(_AMOUNT.search(text))
        + 0.8 * min(len(_IDENTIFIER.findall(text)), 2)
        + 0.6 * min(len(strangers), 3)
        + 0.9 * bool(_DECISION.search(text))
    )


def _fitness(length: int, facts: float) -> float:
    """Too short says little unless it is a fact, too long takes the room of others."""
    if length < 4:
        return 0.75 if facts else 0.3
    if length < 7:
        return 0.75
    return 1.0 if length <= 32 else 0.8

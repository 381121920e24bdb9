"""How a phrase is written down that commands a model.

It is matched in the plain form that `suspicion` makes: lower case, no accents (“й” is “и”, “ß” is
“ss”), one space where there were spaces, hyphens or underscores, lines kept.
"""

# The beginning of a line, sentence, clause or quotation, or a word that leads up to a command.
_BEGINNING = (
    r"(?:^ ?|(?<=[.!?:;,\"“”„«»‹›'‘’()\[\]{}<>…/。！？：；、，=])[ ]?"
    r"|\b(?:please|pls|kindly|now|then|just|simply|also|and|but|so|you must|you should|you shall"
    r"|you will|you need to|you have to|you are to|want you to|i command you to|instead|immediately"
    r"|bitte|jetzt|nun|dann|und|du sollst|du musst|sie mussen|s'il te plait|s'il vous plait"
    r"|ensuite|et"
    r"|por favor|ahora|y|debes|adesso|ora|e|per favore|devi|agora|voce deve|пожалуиста|теперь|и"
    r"|ты должен|вы должны) )"
)


def phrases(*patterns: str) -> list[str]:
    """In a pattern, “> ” is where a command may begin."""
    return [pattern.replace("> ", _BEGINNING, 1) for pattern in patterns]


# So many words may stand between two that tell.
UP_TO_2, UP_TO_4, UP_TO_6 = (rf"(?: [\w']+){{0,{most}}}?" for most in (2, 4, 6))

"""How texts command a model in German, French, Spanish, Italian, Portuguese and Russian."""

from memory.layers.suspicion.phrases import UP_TO_2, UP_TO_4, phrases

_GERMAN = phrases(
    r"> (?:ignorier(?:e|t|en sie)?|vergiss|vergesst|vergessen sie|missachten? ?(?:sie)?|verwirf"
    r"|umgehe"
    r"|befolge)"
    + UP_TO_2
    + r" (?:alle|allen|samtliche|vorherige|bisherige|vorige|obige|vorangegangene"
    r"|vorangehende|fruhere|bestehende|deine|ihre"
    r"|system)\w*" + UP_TO_2 + r" ?\w*(?:anweisung|instruktion"
    r"|befehl|vorgabe|regel|anordnung|prompt|richtlinie|einschrankung)\w*",
    r"> (?:ignoriere?|vergiss|vergessen sie|ignorieren sie) alles,? (?:was|bisherige|vorherige"
    r"|obige"
    r"|zuvor|vorher|oben)",
    r"\b(?:vorherigen?|bisherigen?|obigen?) (?:\w+ )?(?:anweisungen|instruktionen)(?: sind)?"
    r"(?: vollstandig| komplett)?(?: zu)? (?:ignorieren|vergessen)(?= ?(?:$|[.!:]))",
    r"\b(?:du bist|sie sind) (?:jetzt|nun|ab jetzt|ab sofort"
    r"|von nun an)" + UP_TO_4 + r" (?:\w*assistent"
    r"|ki|\w*modell|\w*bot|hacker|pirat|dan|uneingeschrankt\w*|frei von|\w+modus)\b",
    r"\b(?:ab jetzt|ab sofort|von nun an|kunftig|ab nun),? (?:antworte|antwortest du|antworten sie"
    r"|sprich|sprichst du|verhalte dich|gib dich|ignoriere|bist du|empfiehl)\b",
    r"> (?:antworte|antworten sie"
    r"|sprich)" + UP_TO_2 + r" (?:immer|nur|ausschliesslich|stets|kunftig"
    r"|ab jetzt|ab sofort)\b",
    r"> (?:zeige?|nenne?|gib|verrate?|wiederhole?|offenbare?|schreibe?)(?: mir| uns)?"
    + UP_TO_4
    + r" (?:system ?prompts?|systemanweisung\w*|systemnachricht|deine (?:internen "
    r"|geheimen )?(?:anweisungen"
    r"|instruktionen))\b",
    r"> (?:sag|sage|verrate|erzahle"
    r"|teile)" + UP_TO_2 + r" dem (?:nutzer|benutzer|anwender) (?:nicht|nichts)\b",
    r"> tu so,? als (?:ob du|warst du|seist du|seiest du)",
)

_PREVIOUS_FR = r"(?:precedent|anterieur|ci dessus|initial|systeme)\w*"
_FRENCH = phrases(
    r"> (?:ignore[zr]?|oublie[zr]?|neglige[zr]?|(?:ne )?(?:tiens|tenez) (?:pas|aucun) compte(?: de"
    r"| des)?"
    r"|fai(?:s|tes) abstraction(?: de| des)?)" + UP_TO_4 + r" (?:instructions?|consignes?|regles?"
    r"|directives?|prompt)" + UP_TO_2 + rf" {_PREVIOUS_FR}",
    r"> (?:ignore[zr]?|oublie[zr]?) (?:toutes (?:les|tes|vos)|tes|vos) (?:instructions|consignes"
    r"|regles"
    r"|directives)\b",
    r"> (?:ignore[zr]?|oublie[zr]?) tout ce (?:qui|que) (?:precede|j'ai|tu|vous|on)",
    r"\b(?:tu es|vous etes) (?:maintenant|desormais"
    r"|a present)" + UP_TO_4 + r" (?:assistant|ia|modele"
    r"|bot|pirate|hacker|dan|libre de|mode \w+)\b",
    r"\b(?:a partir de maintenant|desormais|dorenavant),?(?: tu| vous)? (?:reponds|repondez"
    r"|repondras"
    r"|parle|parlez|agis|agissez|(?:dois|devez)(?: toujours)? (?:repondre|obeir|agir|parler)|tu es"
    r"|es un"
    r"|obeis)\b",
    r"> (?:reponds|repondez"
    r"|parle)" + UP_TO_2 + r" (?:toujours|uniquement|seulement|exclusivement)\b",
    r"> (?:affiche|montre|revele|repete"
    r"|donne)[zs]?" + UP_TO_4 + r" (?:prompt systeme|invite systeme"
    r"|instructions systeme|tes instructions|ton prompt)\b",
    r"\bne (?:dis|dites|revele|revelez|parle) (?:rien|pas)" + UP_TO_4 + r" a l'utilisateur\b",
    r"> (?:fais comme si tu|pretends que tu|pretends etre)\b",
)

_SPANISH = phrases(
    r"> (?:ignora(?:d|r)?|ignore|olvida(?:d|r|te de)?|olvide|descarta|desobedece|haz caso omiso de"
    r"|no sigas|pasa por alto)"
    + UP_TO_4
    + r" (?:instrucciones|ordenes|reglas|indicaciones|directrices"
    r"|prompt)" + UP_TO_2 + r" (?:anterior|previ|de arriba|original|del sistema|inicial)\w*",
    r"> (?:ignora|ignore|olvida|olvide) (?:todas (?:las|tus)|tus|sus) (?:instrucciones|ordenes"
    r"|reglas"
    r"|directrices)\b",
    r"> (?:olvid[ae]|ignor[ae]) (?:todo )?lo (?:que te|anterior|de arriba)\b",
    r"\bahora eres" + UP_TO_4 + r" (?:asistente|ia|modelo|bot|pirata|hacker|dan|libre de)\b",
    r"\b(?:a partir de ahora|desde ahora|de ahora en adelante),?(?: siempre| solo)? (?:eres"
    r"|responde"
    r"|responderas|debes responder|actua|actuaras|habla|obedece|ignora)\b",
    r"> (?:responde|contesta"
    r"|habla)" + UP_TO_2 + r" (?:siempre|solo|unicamente|solamente|exclusivamente)\b",
    r"> (?:muestra|revela|repite|imprime|di|ensena)(?:me)?" + UP_TO_4 + r" (?:prompt del sistema"
    r"|instrucciones del sistema|tus instrucciones)\b",
    r"\bno (?:le )?(?:digas|reveles|menciones|cuentes)" + UP_TO_4 + r" al usuario\b",
    r"> finge (?:que|ser)\b",
)

_ITALIAN = phrases(
    r"> (?:ignora(?:re|te)?|dimentica(?:re|te|ti)?|trascura|non seguire|non considerare)"
    + UP_TO_4
    + r" (?:istruzioni|regole|direttive|ordini|comandi|prompt)"
    + UP_TO_2
    + r" (?:precedent|sopra|inizial|di sistema|original)\w*",
    r"> (?:ignora|dimentica) (?:tutte le(?: tue)?|le tue) (?:istruzioni|regole|direttive)\b",
    r"> dimentica tutto (?:quello|cio|quanto)\b",
    r"\b(?:ora|adesso) sei"
    + UP_TO_4
    + r" (?:assistente|ia|modello|bot|pirata|hacker|dan|libero da)\b",
    r"\b(?:d'ora in poi|da ora in poi|da adesso in poi|da questo momento),?(?: sempre"
    r"| solo)? (?:sei|rispondi"
    r"|risponderai|devi rispondere|agisci|parla|obbedisci|ignora)\b",
    r"> (?:rispondi|parla)" + UP_TO_2 + r" (?:sempre|solo|soltanto|esclusivamente)\b",
    r"> (?:mostra|rivela|ripeti|stampa|di"
    r"|dim)(?:mi)?" + UP_TO_4 + r" (?:prompt di sistema|istruzioni di"
    r" sistema|tue istruzioni)\b",
    r"\bnon (?:dire|rivelare|menzionare)" + UP_TO_4 + r" all'utente\b",
    r"> fingi (?:di essere|che)\b",
)

_PORTUGUESE = phrases(
    r"> (?:ignor[ea](?:m|r)?|esquec[ae]r?|desconsider[ea]|descarte|nao siga)"
    + UP_TO_4
    + r" (?:instrucoes|ordens|regras|diretrizes|comandos|prompt)"
    + UP_TO_2
    + r" (?:anterior|previ|acima|origina|inicia|do sistema)\w*",
    r"> (?:ignore|esqueca|desconsidere) (?:todas as(?: suas)?|suas|tuas) (?:instrucoes|ordens"
    r"|regras"
    r"|diretrizes)\b",
    r"> esqueca tudo (?:o que|que)\b",
    r"\b(?:agora voce|voce agora) e"
    + UP_TO_4
    + r" (?:assistente|ia|modelo|bot|pirata|hacker|dan|livre de)\b",
    r"\b(?:a partir de agora|de agora em diante|doravante),?(?: sempre| apenas)? (?:voce e um"
    r"|responda"
    r"|voce deve responder|aja|fale|obedeca|ignore)",
    r"> (?:responda|fale)" + UP_TO_2 + r" (?:sempre|apenas|somente|so em)\b",
    r"> (?:mostre|revele|repita|imprima"
    r"|diga)(?: me)?" + UP_TO_4 + r" (?:prompt do sistema|instrucoes do"
    r" sistema|suas instrucoes)\b",
    r"\bnao (?:diga|conte|revele|mencione)" + UP_TO_4 + r" ao usuario\b",
    r"> finja (?:que|ser)\b",
)

_RUSSIAN = phrases(
    r"> (?:(?:про)?игнорируи(?:те)?|забудь(?:те)?|не следуи(?:те)?|отбрось(?:те)?|отмени(?:те)?"
    r"|нарушь)"
    + UP_TO_2
    + r" (?:все|предыдущ\w+|прежни\w+|прошл\w+|выше\w*|свои|твои|ваши|системн\w+|начальн\w+)"
    + UP_TO_2
    + r" ?(?:инструкци|указани|команд|правил|распоряжени|промпт|настроик|ограничени)\w*",
    r"> (?:забудь(?:те)?|игнорируи(?:те)?) все,? что\b",
    r"\b(?:ты теперь|теперь ты|вы теперь|теперь вы|отныне ты"
    r"|отныне вы)" + UP_TO_4 + r" (?:ассистент|ии"
    r"|модель|бот|хакер|пират|помощник|свободен|dan)\b",
    r"\b(?:отныне|с этого момента|впредь|с этои минуты),?(?: всегда| только| ты"
    r"| вы)* (?:отвечаи(?:те)?"
    r"|будешь отвечать|говори|деиствуи|должен отвечать|подчиняися|игнорируи)\b",
    r"> (?:всегда отвечаи|отвечаи(?:те)? (?:всегда|только))(?:те)?\b",
    r"> (?:покажи|выведи|раскрои|повтори|напечатаи"
    r"|назови)(?:те)?" + UP_TO_4 + r" (?:системн\w+ (?:промпт"
    r"|инструкц|подсказк)\w*|свои инструкции)",
    r"\bне (?:говори|сообщаи|рассказываи)(?:те)?" + UP_TO_4 + r" пользовател",
    r"> притворись",
)

PHRASES = (*_GERMAN, *_FRENCH, *_SPANISH, *_ITALIAN, *_PORTUGUESE, *_RUSSIAN)

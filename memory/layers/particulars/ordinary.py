"""Words that are no names, in the languages in which names are looked for."""

# Before a name, and no part of it.
TITLES = frozenset(
    """
    mr mrs ms miss dr prof sir madam herr frau herrn monsieur madame mme señor señora sr sra
    signor signora don doña господин госпожа
    """.split()
)
# What a name may follow even where every word has a capital.
ANNOUNCING = TITLES | frozenset(
    """
    owner lead contact assignee author reviewer team projekt firma kunde kundin kollege kollegin
    chef chefin stadt produkt codename entwickler entwicklerin verantwortlich responsable
    responsabile responsável ответственный ответственная
    """.split()
)
# Between the words of one name.
BINDING = frozenset("of de del della di da do dos du des von van bin zu".split())
# Capitalised wherever they stand.
CAPITALISED = frozenset(
    """
    i i'm i've i'll i'd monday tuesday wednesday thursday friday saturday sunday january february
    march april may june july august september october november december mon tue wed thu fri sat sun
    english internet web ok okay montag dienstag mittwoch donnerstag freitag samstag sonntag januar
    februar märz mai juni juli oktober dezember sie ihr ihre ihnen ihrem ihren lundi mardi mercredi
    jeudi vendredi samedi dimanche lunes martes miércoles jueves viernes sábado domingo
    понедельник вторник среда четверг пятница суббота воскресенье
    """.split()
)
# What sentences and bullets begin with.
STARTING = CAPITALISED | frozenset(
    """
    a an the this that these those it its he she they we you one all any both each every some many
    most more few several no none not nothing nobody everyone everybody someone anyone other others
    another such our my your his her their here there now then today tomorrow yesterday tonight soon
    later next last first second third finally also still yet already only just even again after
    before during since until while when where why how what who which whether if unless because
    although though as at by for from in into of off on onto out over per than to under up via with
    within without about above across against along among around behind below beside besides between
    beyond despite down near through throughout toward towards upon and but or nor so however
    therefore thus hence meanwhile instead otherwise overall please let do does did don't is are was
    were be been has have had can could may might must shall should will would need needs open
    question questions decision decisions decided topic topics note notes summary update updates
    action actions item items todo status step steps plan plans goal goals issue issues problem
    problems risk risks fact facts budget deadline date dates time owner owners team teams project
    hey hi hello bye wow yeah yep thanks thank congrats sure oh ah aww awesome alright great glad
    meeting meetings work working new old key main currently previously recently agreed discussed
    discussion planned pending unresolved remaining details user users assistant people person
    customer customers client clients management
    der die das den dem des ein eine einen einem einer kein keine wir er es man alles beide jeder
    jede und oder aber denn doch weil wenn ob als wie was wer wo wann warum im am an auf aus bei bis
    für gegen mit nach ohne seit um unter vom von vor zu zum zur über zwischen durch laut ab dann
    danach noch nur auch schon heute morgen gestern offen offene frage fragen entscheidung thema
    beschluss nächste nächster ziel
    le la les un une du de et ou mais donc car quand comme où qui que quoi il elle ils elles nous
    vous je tu ce cet cette ces mon ma mes ton ta tes son sa ses notre nos votre vos leur leurs aux
    au en dans sur sous avec sans pour par chez vers depuis pendant avant après entre contre selon
    aujourd'hui hier demain décision prochaine équipe réunion aucun aucune toutes tous tout
    el los las una unos unas y o pero porque cuando donde quien se lo su sus mi mis tus nuestro
    nuestra con sin desde hasta hacia sobre según tras durante hoy ayer mañana pregunta decisión
    próximo equipo reunión todos todas cada también ya sí hay
    gli uno ed perché quando dove chi che noi voi loro senza tra fra dopo prima oggi ieri domani
    anche non os uma uns umas com sem depois antes hoje ontem amanhã não também
    и или но а в во на с со к ко по из за от до для о об при без через после перед между если когда
    где кто что как так это этот эта эти он она они мы вы я ты все всё ещё уже не нет да сегодня
    вчера завтра решено вопрос открытый открыт команда проект встреча решение нужно надо будет было
    был была следующий срок бюджет
    ο η το οι τα και στο στη στην στον από για με σε αν όταν που πως ότι δεν θα να
    """.split()
)
# They tell a line's language.
GERMAN = frozenset(
    """
    der die das den dem des und ist sind nicht mit für auf wird werden wurde wurden zum zur am im
    vom beim bis ab ein eine einen einem einer auch nach bei von aus über durch noch wir hat
    """.split()
)
ENGLISH = frozenset(
    "the of and is are was were to with for on will has have by that this it at from be".split()
)
# Of someone else than the bearer of a name: “皆さん”, “お客様”.
NOBODY = frozenset("皆 皆々 お客 客 奥 王 神 各位".split())

"""Text that talks to the program instead of the reader: found, and blacked out before a model sees the page.

A fetched page is data. Sentences in it that give orders to a language model are indirect prompt injection (Greshake et al.
2023, "Not what you've signed up for", arXiv 2302.12173); telling a model which text is data is spotlighting (Hines et al.
2024, "Defending Against Indirect Prompt Injection Attacks With Spotlighting", arXiv 2403.14720). Prompts here do the
latter; this module adds a screen in front: `commands` finds such sentences by their wording, `masked` replaces them by
a filler of equal length, so that every offset still holds, and `is_clean` refuses a quote that holds one.

What a list of wordings cannot do: orders in words nobody listed, in languages not listed here, spelled in fragments across
a page, hidden in a picture, or phrased as an innocent fact. Expect a determined author to pass. It is the second line; the
first is that nothing a page says can do anything: agents only ever propose, proposals need quotes, and the graph is changed
by this program alone. Texts *about* prompt injection are flagged too: they quote it.
"""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from kgsynth.web.hidden import without_invisible

FILLER = "█"
_WINDOW, _OVERLAP = 1200, 500  # characters looked at together; no wording is longer than the overlap
_REACH = 400  # characters a sentence may extend to either side of what gave it away
_ENDS = re.compile(r"[.!?。！？؟।](?=[\s\"'”’)\]*_]|$)|[。！？]|\n")

_ = r"[\s*_`\"'“”>,:.-]{1,6}"  # between two words: spaces, Markdown marks, a line break
_ANY = r"(?:(?:all|any|every|each|of|the|these|those|this|my|our|and|everything|whatever|about|in|from) ){0,5}"
_ORDER = r"(?:instructions?|prompts?|directions|directives?|guidelines|orders|training|safety \w{1,20})"
_EARLIER = r"(?:previous(?:ly)?|prior|above|earlier|preceding|foregoing|initial|original|existing|system|developer|your|other|past|current|given|former)"
_MODEL = r"(?:AI|A\.I\.|LLMs?|GPTs?|chatgpt|chatbots?|(?:large )?language models?|assistants?|AI (?:assistants?|agents?|models?|systems?)|(?:web|research|browsing|autonomous) agents?)"
_ORDER_WORDS = (
    "instruction instructions prompt prompts directions directive directives guidelines orders training safety"
)
_MODEL_WORDS = "ai i llm llms gpt gpts chatgpt chatbot chatbots language assistant assistants agent agents"
_WHICH = r"(?:the|a|an|this|these|following|new|all|every|each|only|one|two|three|your|its|our|whole|entire)"


def _words(pattern: str) -> str:
    """A pattern in which each space stands for what may be between two words."""
    return pattern.replace(" ", _)


_DROP = "tells the reader to drop its instructions"
_ROLE = "assigns the reader a role"
_ADDRESS = "addresses a model"
_GRAPH = "gives orders about the graph"
_REPLY = "dictates the reply"
_MARKER = "fakes a role marker"

# (reason, words of which a text must hold one of each group to be looked at more closely, wording); the words of a group
# that begins with ~ may be parts of words.
_ORDERS = tuple(
    (reason, [frozenset(group.split()) for group in needs.format(ORDER=_ORDER_WORDS, MODEL=_MODEL_WORDS).split(" + ")], re.compile(_words(pattern), re.IGNORECASE | re.MULTILINE))
    for reason, needs, pattern in (
        (_DROP, "ignore ignoring disregard disregarding forget override overriding overrule bypass follow following obey obeying neglect discard + {ORDER}",
         rf"\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget|overrid(?:e|ing)|overrule|bypass|do not (?:follow|obey)|don't (?:follow|obey)|stop (?:following|obeying)|neglect|discard) {_ANY}{_EARLIER}(?: (?:{_EARLIER}|and|or|user|safety)){{0,3}} {_ORDER}\b"),
        (_DROP, "ignore ignoring disregard disregarding forget follow obey + previous previously prior above earlier preceding foregoing system your",
         rf"\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget|do not (?:follow|obey)|don't (?:follow|obey)) {_ANY}(?:previous(?:ly)?|prior|above|earlier|preceding|foregoing|system|your)(?: (?:and|or|user|system|safety|given)){{0,3}} (?:rules|commands?|context|messages?|constraints|restrictions|conversation|programming|text)\b"),
        (_DROP, "ignore disregard forget override bypass + {ORDER}",
         rf"\b(?:ignore|disregard|forget|override|bypass) {_ANY}{_ORDER}(?: (?:you|that|which|were|was|are|have|been|had|so|to|from|by|your|the|user|system|developers?)){{0,8}} (?:given|provided|received|far|earlier|before|above|previously|now|told)\b"),
        (_DROP, "ignore disregard forget + everything anything all",
         r"\b(?:ignore|disregard|forget) (?:everything|anything|all)(?: (?:that|you|you've|were|was|have|been|told|said|written|learned|know|came|come|of|the|it|this)){0,8} (?:above|before|previously|earlier|told|prior|so far)\b"),
        (_DROP, "new updated revised real actual + {ORDER}",
         rf"\b(?:new|updated|revised|real|actual) (?:system )?{_ORDER} (?:for (?:you|the {_MODEL})|are as follows|from (?:the )?(?:developers?|administrators?|operators?|system|openai|anthropic))\b"),
        (_DROP, "instruction instructions prompt override directive",
         r"^[^\w\n]{0,6}(?:new|updated|system|admin|override|urgent) (?:system )?(?:instructions?|prompt|override|directive)\s?[:!]"),
        (_ROLE, "you + are + now longer henceforth hereby",
         rf"\byou are (?:now|no longer|henceforth|hereby)(?: (?:a|an|the|my|in|acting|as|going|to|be|act)){{0,6}} (?:\w{{1,20}} ){{0,3}}?(?:{_MODEL}|bot|DAN|jailbr(?:oken|eak)|unrestricted|unfiltered|uncensored|evil|pirate|hacker|developer mode|debug mode|god mode|root mode|admin mode|free from|bound by)\b"),
        (_ROLE, "pretend imagine act behave roleplay role",
         rf"\b(?:pretend|imagine|act as if|behave as if|roleplay|role-play)(?: (?:to be|that|as|like))?(?: (?:you(?:'re| are| were)?|now)){{0,2}} (?:a|an|the|not) (?:\w{{1,20}} ){{0,3}}?(?:{_MODEL}|DAN|unrestricted|hacker|no (?:rules|restrictions))\b"),
        (_ROLE, "from + now + you",
         r"\bfrom now on,? you (?:are (?:a|an|the|my|not|no)\b|(?:will|must|should|shall|have to) (?:only |always |never )?(?:act|answer|respond|reply|obey|ignore|pretend|behave|speak|follow)\b)"),
        (_ROLE, "act + unrestricted unfiltered dan different",
         r"\bact as (?:an? )?(?:unrestricted|unfiltered|DAN|different (?:AI|assistant|persona))\b"),
        (_ADDRESS, "ai artificial language llm chatbot",
         r"\bas an? (?:AI|artificial intelligence|(?:large )?language model|LLM|chatbot)(?: (?:language )?(?:model|assistant|agent|system)\b|,? (?:you|I|it is your|please|never|always)\b)"),
        (_ADDRESS, "if + you + bot crawler {MODEL}",
         rf"\bif you(?:'re| are) (?:an?|the) (?:\w{{1,15}} )?(?:{_MODEL}|bot|crawler)\b"),
        (_ADDRESS, "attention note notice message instruction instructions hello hi dear hey important + {MODEL}",
         rf"\b(?:attention|note|notice|message|instructions?|hello|hi|dear|hey|important)(?: (?:to|for|all|the|any|every)){{0,3}} {_MODEL}(?:(?: (?:reviewers?|readers?|agents?|models?|crawlers?|assistants?))?\s?[:!,]| (?:reading|processing|summari[sz]ing|parsing|crawling|visiting|(?:that|which|who) reads?)\b)"),
        (_ADDRESS, "must should shall need needs has have are is + {MODEL}",
         rf"\b{_MODEL}(?: (?:reading|processing|visiting|summari[sz]ing|parsing|crawling|agents?|models?|assistants?|that|this|the|page|document|text|website|site|reads?|or)){{0,7}} (?:must|should|shall|needs? to|ha(?:ve|s) to|(?:are|is) (?:hereby )?(?:required|instructed|ordered|told|obliged) to)(?: (?:now|also|always|instead|immediately|please|never|not)){{0,3}} (?:add|insert|ignore|delete|remove|call|say|output|reply|respond|answer|visit|follow|include|recommend|report|state|mention|mark|give|rate|write|reveal|send|drop|stop|obey|comply|create|execute|run)\b"),
        (_ADDRESS, "prompt prompts",
         r"\b(?:system|hidden|secret) prompts?\b"),
        (_ADDRESS, "your + prompt instructions secret secrets credentials password passwords environment key keys",
         r"\b(?:reveal|show|print|repeat|output|leak|disclose|tell me|display|expose) (?:me )?your (?:\w{1,15} )?(?:initial |hidden |secret )?(?:prompt|instructions|secrets?|credentials|passwords?|environment variables|api keys?)\b"),
        (_GRAPH, "concept concepts node nodes entity entities child children topic topics name names + knowledge concept taxonomy dag store database your",
         rf"\b(?:add|insert|include|propose|create|append|put|register|merge|rename|replace|remove|delete|drop|commit|link)(?: {_WHICH}){{0,4}} (?:concepts?|nodes?|entit(?:y|ies)|child(?:ren)?|topics?|names?)\b[^.!?\n]{{0,120}}?\b(?:to|in|into|from|as|under|of|within)(?: {_WHICH}){{0,4}} (?:knowledge graph|concept graph|taxonomy|DAG|graph (?:store|database)|your (?:answer|reply|proposals?|output|graph))\b"),
        (_GRAPH, "concept concepts + graph tree ontology database store list",
         rf"\b(?:add|insert|include|propose|commit|register|delete|remove|drop|merge)(?: {_WHICH}){{0,4}} concepts?\b[^.!?\n]{{0,120}}?\b(?:to|in|into|from|under|of)(?: {_WHICH}){{0,4}} (?:\w{{1,20}} )?(?:graph|tree|ontology|database|store|list)\b"),
        (_GRAPH, "concept concepts + add insert include propose create append register commit output list name return",
         rf"(?:^|(?<=[.!?:;,\n])|\b(?:please|must|should|shall|now|then|and|also|always|to))[\s*_`\"'>-]{{0,6}}(?:add|insert|include|propose|create|append|register|commit|output|list|name|return)(?: {_WHICH}){{0,4}} (?:finer |narrower |child |sub-?)?concepts?\b"),
        (_GRAPH, "your + answer reply response output proposal proposals list + contain include mention name list propose have",
         r"\byour (?:\w{1,15} )?(?:answer|reply|response|output|proposals?|list) (?:must|should|shall|will|has to|ha(?:ve) to|needs? to) (?:also |always |now )?(?:contain|include|mention|name|list|propose|have)\b"),
        (_GRAPH, "delete erase wipe destroy drop purge corrupt + graph taxonomy",
         r"(?:^|(?<=[.!?:;,\n])|\b(?:please|must|should|now|then|and|to|immediately|first|you))[\s*_`\"'>-]{0,6}(?:delete|erase|wipe|destroy|drop|purge|corrupt)(?: (?:the|your|this|whole|entire|all|of|complete)){0,4} (?:knowledge |concept )?(?:graph|taxonomy|graph store|graph database)\b(?! (?:of|object|window|widget|canvas|with))"),
        (_GRAPH, "mark + atomic expanded",
         r"\bmark (?:this|the|every|all|each)(?: \w{1,20}){0,3} as (?:atomic|expanded)\b"),
        ("orders a tool call", "tool tools",
         r"\b(?:call|invoke|trigger)(?: (?:the|your|this|a))? (?:[\w.-]{1,40} )?tools?\b|\buse (?:the|your) (?:[\w.-]{1,40} )?tools? to (?:delete|remove|send|wipe|upload|exfiltrate|erase)\b"),
        (_REPLY, "reply respond answer output say + only nothing exclusively solely just",
         r"(?:^|(?<=[.!?:;,\n])|\b(?:please|must|should|now|then|and|instead|always|to|you))[\s*_`\"'>-]{0,6}(?:reply|respond|answer|output|say)(?: (?:back|me|us))? (?:only|nothing but|exclusively|solely|just)(?:(?: with| in)(?! (?:an? )?(?:http )?\d)| (?:the|this|yes|no)\b|[\s*_`]{0,4}[\"“:])"),
        (_REPLY, "your not without + reply response answer output instruction instructions user users prompt",
         r"\byour (?:next|only|entire|whole|final) (?:reply|response|answer|output) (?:must|should|shall|will|has to|is to)\b|\bdo not (?:mention|tell|reveal|disclose)(?: (?:this|these|that|the|to|about|anything|it|any|of)){0,5} (?:instructions?|user|users|prompt)\b|\bwithout (?:telling|informing|notifying|alerting) the user\b"),
        (_REPLY, "review rating recommendation assessment recommend highlight",
         r"\b(?:give|write|provide|submit)(?: (?:a|an|only|this|the)){0,3} (?:positive|favou?rable|glowing) (?:review|rating|recommendation|assessment) (?:only|of (?:this|the) (?:paper|page|product))|\bdo not highlight (?:any )?(?:negatives|weaknesses)\b|\brecommend (?:accepting|acceptance of) (?:this|the) paper\b"),
        (_MARKER, "~ < [inst] [/inst]",
         r"<\|?\s?(?:im_start|im_end|im_sep|endoftext|eot_id|begin_of_text|start_header_id|end_header_id|endofprompt)\s?\|?>|<\|\s?(?:system|assistant|user|channel|message)\s?\|>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|</?(?:system_prompt|system-reminder|assistant|tool_call|tool_result|function_calls?|function_results?|untrusted|user_query)>|<system>"),
        (_MARKER, "assistant human system user developer instruction instructions response responses",
         r"^[\x20\t>*_#`-]{0,8}(?:assistant|human)[*_`]{0,3}:(?!:)|^[\x20\t>*_#`-]{0,8}(?:system|user|developer)[*_`]{0,3}:(?=[\s*_`]{1,6}(?:you|ignore|from now|please|now|disregard|forget|the user|the assistant|new|your)\b)|^#{2,4}\x20?(?:instruction|response)s?:"),
        (_MARKER, "end begin start",
         r"^[-=#*<\[\x20]{3,20}(?:end|begin|start) (?:of )?(?:the )?(?:page|document|data|untrusted|user|system|context|instructions|input|content|quoted?)(?: (?:content|text|data|input|prompt|message|instructions|page))?[-=#*>\]\x20]{2,20}$"),
        ("orders decoding", "decode decipher decrypt unscramble rot13 base64",
         r"\b(?:decode|decipher|decrypt|unscramble|rot13|base64)\b[^\n]{0,60}?\b(?:and|then) (?:follow|execute|obey|run|do|perform|act on|comply)(?: with)? (?:it|its|them|the|what|that|this)\b"),
        (_DROP, "ignoriere ignorieren missachte missachten vergiss vergessen übergehe bist lösche löschen",
         r"\b(?:ignorier(?:e|en sie)?|missachte(?:n sie)?|vergiss|vergessen sie|übergehe)(?: (?:alle|die|deine|ihre|sämtliche|bitte|alles|jede)){0,4} (?:vorherigen|bisherigen|obigen|vorigen|früheren|vorangegangenen|vorhergehenden) (?:Anweisungen|Instruktionen|Befehle|Regeln|Vorgaben|Prompts?)|\bdu bist (?:jetzt|nun|ab jetzt|ab sofort) (?:ein|eine|kein)\b|\b(?:lösche|löschen sie)(?: (?:den|das|die|ganzen|gesamten)){0,3} (?:\w{1,20}-?)?graph(?:en)?\b"),
        (_DROP, "ignore ignorez ignorer oublie oubliez oublier néglige négligez négliger tu vous supprime supprimez supprimer efface effacez effacer",
         r"\b(?:ignore[zr]?|oublie[zr]?|néglige[zr]?)(?: (?:toutes|tous|les|tes|vos|ces|des|l'ensemble)){0,4} (?:instructions|consignes|directives|règles|ordres) (?:précédentes?|antérieure?s?|ci-dessus|initiales|reçues)|\b(?:tu es|vous êtes) (?:maintenant|désormais) (?:un|une)\b|\b(?:supprime[zr]?|efface[zr]?) (?:tout )?le graphe\b"),
        (_DROP, "ignora ignore olvida olvide desatiende esqueça esquece ignorar dimentica ignorate eres sei você elimina borra apague cancella",
         r"\b(?:ignora|ignore|olvida|olvide|desatiende|esqueça|esquece|ignorar|dimentica|ignorate)(?: (?:todas|todos|tutte|tutti|las|los|le|gli|i|as|os|tus|sus|suas)){0,4} (?:instrucciones|órdenes|reglas|indicaciones|instruções|ordens|regras|istruzioni|regole|ordini) (?:anteriores|previas|precedentes?|precedenti|acima|de arriba|prévias|iniciales)|\b(?:ahora eres|agora você é|ora sei) (?:un|una|um|uma)\b|\b(?:elimina|borra|apague|cancella) (?:todo )?(?:el|o|il) grafo\b"),
        (_DROP, "игнорируй игнорируйте проигнорируй проигнорируйте забудь забудьте следуй следуйте теперь удали удалите",
         r"\b(?:игнорируй(?:те)?|проигнорируй(?:те)?|забудь(?:те)?|не следуй(?:те)?)(?: (?:все|всем|эти|свои|любые)){0,3} (?:предыдущи|прежни|прошлы|вышеуказанн|предшествующи)\w{1,3} (?:инструкци\w{1,3}|указани\w{1,3}|команд\w?|правил\w?)|\bтеперь ты\b|\bудали(?:те)? (?:весь )?граф\b"),
        (_DROP, "~ 忽略 无视 忽視 無視 忘 不要理会 你现在 从现在 系统提示词 删除",
         r"(?:忽略|无视|忽視|無視|忘记|忘掉|忘記|不要理会|请无视)[^。\n]{0,12}(?:之前|以上|先前|上面|前面|此前|所有|一切)[^。\n]{0,8}(?:指令|指示|提示|说明|命令|规则|規則|内容)|你现在是一|从现在开始，?你|系统提示词|删除(?:整个|这个|知识|概念){0,2}图谱"),
        (_DROP, "~ の あなたは 이전 위의 앞의 지금까지의 기존 당신은",
         r"(?:以前|上記|これまで|前|先|今まで|すべて|全て)の[^。\n]{0,8}(?:指示|命令|プロンプト|ルール|指令)[^。\n]{0,6}(?:無視|忘れ|破棄)|あなたは(?:今から|これから|今や)|(?:이전|위의|앞의|지금까지의|기존)[^.\n]{0,8}(?:지시|명령|프롬프트|지침)[^.\n]{0,6}(?:무시|잊)|당신은 이제"),
        (_DROP, "~ تجاهل انس önceki ignoruj zapomnij negeer पिछले पूर्व ऊपर",
         r"(?:تجاهل|انس)(?: (?:جميع|كل|كافة))? (?:التعليمات|الأوامر|الإرشادات) (?:السابقة|أعلاه)|önceki (?:tüm )?(?:talimatları|komutları|yönergeleri) (?:yok(?: )?say|unut|görmezden gel)|(?:zignoruj|ignoruj|zapomnij)(?: (?:wszystkie|o wszystkich))? (?:poprzednie|wcześniejsze|powyższe|poprzednich) (?:instrukcje|polecenia|instrukcjach)|negeer (?:alle )?(?:vorige|eerdere|bovenstaande) (?:instructies|opdrachten)|(?:पिछले|पूर्व|ऊपर के)(?: सभी)? (?:निर्देशों|आदेशों) (?:को )?(?:अनदेखा|नज़रअंदाज़|भूल)"),
    )
)  # fmt: skip

_WORD = re.compile(r"[^\W_]+")
_BLOB = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,8192}={0,2}(?![A-Za-z0-9+/_=-])")
_DECODE = re.compile(
    r"\b(?:(?:decode|decipher|run|read)\s(?:this|it|the following|the (?:string|text|message|blob))|execute|follow|obey)",
    re.IGNORECASE,
)
_SPACED = re.compile(r"(?<!\S)(?:[A-Za-z] {1,3}){7,400}[A-Za-z](?!\S)")

# One character for one character, so that offsets hold: full-width and mathematical letters, and letters of other scripts
# that look Latin.
_LOOKALIKE = str.maketrans(
    "аеорсухіѕјһԁԛԝѵАЕОРСУХІЅЈВМНКТαονρτικΑΒΕΗΙΚΜΝΟΡΤΧΥΖ’‘ʼ", "aeopcyxisjhdqwvAEOPCYXISJBMHKTaovptikABEHIKMNOPTXYZ'''"
)


def commands(text: str) -> list[tuple[int, int, str]]:
    """(start, end, reason) of every sentence that addresses a program or gives it orders, in order, none overlapping."""
    plain = _folded(text)
    readings = [plain]
    if not plain.isascii() and (latin := plain.translate(_LOOKALIKE)) != plain:
        readings.append(latin)
    ends = [match.end() for match in _ENDS.finditer(plain)]
    found = []
    for reading in readings:
        for start, end, reason in (*_worded(reading), *_encoded(reading), *_spelled(reading)):
            found.append((*_sentence(plain, ends, start, end), reason))
    return _merged(found)


def masked(text: str) -> str:
    """The text with every such sentence replaced by a filler: equally long, line breaks kept, all offsets as before."""
    parts, at = [], 0
    for start, end, _reason in commands(text):
        parts += [text[at:start], re.sub(r"[^\n]", FILLER, text[start:end])]
        at = end
    return "".join([*parts, text[at:]])


def is_clean(quote: str) -> bool:
    """A quote that may be stored and shown to a model: no command, no filler, nothing invisible in it."""
    return FILLER not in quote and without_invisible(quote) == quote and not commands(quote)


def _worded(text: str) -> Iterator[tuple[int, int, str]]:
    """Matches of the wordings. Windows that hold none of a wording's words are passed over, which is nearly all of them."""
    for at in range(0, len(text), _WINDOW - _OVERLAP):
        end = min(at + _WINDOW, len(text))
        last = end if end == len(text) else end - 20  # a match that touches the edge is left to the next window
        lower = text[at:end].lower()
        words = frozenset(_WORD.findall(lower))
        for reason, needs, pattern in _ORDERS:
            if all(_holds(group, words, lower) for group in needs):
                for match in pattern.finditer(text, at, end):
                    if match.end() <= last:
                        yield match.start(), match.end(), reason


def _holds(group: frozenset[str], words: frozenset[str], lower: str) -> bool:
    return any(map(lower.__contains__, group - {"~"})) if "~" in group else not group.isdisjoint(words)


def _encoded(text: str) -> Iterator[tuple[int, int, str]]:
    """Base64 that decodes to a command, or that the words around it order to decode."""
    for match in _BLOB.finditer(text):
        hidden = _decoded(match[0])
        if not hidden:
            continue
        if any(True for _ in _worded(_folded(hidden))):
            yield match.start(), match.end(), "hides a command in base64"
        elif len(re.findall(r"[a-z]{2,}", hidden)) > 3 and _DECODE.search(
            text, max(0, match.start() - 120), match.start()
        ):
            yield match.start(), match.end(), "orders decoding"


def _decoded(blob: str) -> str:
    """The text in a base64 string; "" when it is none."""
    try:
        raw = base64.b64decode(blob.rstrip("=").translate({45: 43, 95: 47}) + "=" * (-len(blob.rstrip("=")) % 4))
        text = raw.decode()
    except (binascii.Error, ValueError):
        return ""
    return text if text.isprintable() or text.replace("\n", "").isprintable() else ""


def _spelled(text: str) -> Iterator[tuple[int, int, str]]:
    """Letters with a space between them: "i g n o r e"."""
    for match in _SPACED.finditer(text):
        if re.search(r"ignore|disregard|systemprompt|instructions|deletethe", match[0].replace(" ", ""), re.IGNORECASE):
            yield match.start(), match.end(), "spells a command letter by letter"


def _folded(text: str) -> str:
    """Compatibility forms as the plain letters they stand for, where that is one character."""
    import unicodedata

    if text.isascii():
        return text
    fold = {ord(c): plain for c in set(text) if ord(c) > 127 and len(plain := unicodedata.normalize("NFKC", c)) == 1}
    return text.translate(fold)


def _sentence(text: str, ends: list[int], start: int, end: int) -> tuple[int, int]:
    """The sentence around [start, end), white space outside, at most _REACH characters more on either side."""
    before = bisect_right(ends, start)
    left = max(ends[before - 1] if before else 0, start - _REACH)
    after = bisect_left(ends, end)
    right = min(ends[after] if after < len(ends) else len(text), end + _REACH)
    while left < start and text[left].isspace():
        left += 1
    while right > end and text[right - 1].isspace():
        right -= 1
    return left, max(right, end)


def _merged(found: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    out: list[tuple[int, int, str]] = []
    for start, end, reason in sorted(found):
        if out and start < out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]), out[-1][2])
        else:
            out.append((start, end, reason))
    return out

"""Answers that say nothing without their question: "Which city do you live in?", "Bergen".

They are kept behind it, as both were said. What points to what is being done ("Shall I run it?",
"yes") is no fact, and what says enough by itself ("I live in Bergen") needs no question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Final

from agent_memory.extraction.rules.corrections import corrected
from agent_memory.text.phrases import any_of, pattern, words_of
from agent_memory.text.sentences import sentences
from agent_memory.text.small_talk import FILLERS
from agent_memory.text.speech_acts import (
    is_asking,
    is_bare_name,
    is_instruction,
    is_order,
    is_request_to_remember,
    is_small_talk,
)

_LONGEST_QUESTION: Final = 200
"""Characters. What is longer explains something."""
_LONGEST_ANSWER: Final = 20
"""Words."""
_ENDING: Final = 1_000
"""Characters at the end of a message among which its questions are looked for."""

# Replies ------------------------------------------------------------------------------------

_POLITE: Final = any_of("please|thanks|thank you|well|oh|uh|um+|hm+|unfortunately|luckily|sadly")
_NONE: Final = words_of("none nothing nobody neither nowhere")
_YES: Final = words_of(
    "yes yeah yep yup yea correct right exactly indeed absolutely definitely sure ja jawohl oui si"
    " sí claro sim はい ええ うん 是 是的 对 有 네 예"
)
_NO: Final = any_of(
    "(?:god |hell )?no|nope|nah|never|nein|nee|non|não|いいえ|いえ|不|不是|没有|아니요"
)
_HOW_FAR: Final = any_of(
    r"""
    that(?:'s| is) (?:right|correct|true)|not that (?:I|we) know of
    of course|not (?:yet|really|any ?more|often|at all|always)|at all|of (?:those|them)
    all the time|sometimes|always|often|rarely|occasionally|a lot|a bit|actually
    (?:(?:I|we|he|she|it|they) )?(?:am|are|is|do|does|did|have|has|had|was|were|can)(?: not|n't)?
    (?:I'm|he's|she's|it's|we're|they're) not|(?:I|we|he|she|it|they) (?:can't|cannot|won't)
    """
)
_IS_POLITE: Final = pattern(rf"\W*(?:{_POLITE}\b\W*)+")
_IS_YES_OR_NO: Final = pattern(rf"\W*(?:(?:{_POLITE}|{_NONE}|{_YES}|{_NO}|{_HOW_FAR})\b\W*)+")
_IS_REPLY: Final = pattern(
    rf"\W*(?:(?:{_YES}|{_NO})\b[,;:\u2014-]?\s|(?:I|we) (?:\w+ ){{1,2}}(?:it|them)\W*$)"
)
"""What is an answer by its form: "No, I quit", "I love it"."""
_SELF: Final = pattern(r"\b(?:I|we)\b|\b(?:my|our)\b(?:\W+\w+){3}")
"""What says something by itself, about the speaker: "my boss is Ann", but not "only my mother"."""
_POINTS: Final = pattern(
    r"\W*(?:(?:the )?(?:first|second|third|last|former|latter|other)(?: (?:one|option|approach))?"
    r"|(?:this|that|these|those)(?: ones?)?|both(?: of them)?|either|all(?: of them)?"
    r"|option \w+|[a-d])[\s.,!)]*"
)
_UNKNOWN: Final = any_of(
    r"""
    (?:I )?(?:don't|do not|can't|couldn't) (?:\w+ )?(?:know|remember|recall|care|mind|say|tell)
    (?:I'm |I am )?not (?:\w+ )?sure|dunno|idk|maybe|perhaps|(?:it )?depends|good question
    no (?:idea|clue|preference|matter|problem|worries|thanks?|need|rush)|(?:doesn't|does not) matter
    (?:it's )?(?:up to you|your (?:choice|call))|you (?:tell|choose|decide|pick)|surprise me
    any(?:thing|where|one|way)?(?= is| will|'s|\W*$)|whatever|never ?mind|none of your
    skip|pass|later|not now|why|what|who|how|huh|stop|cancel|quit|n/?a|let me|wait|hold on
    one (?:sec|moment|minute)|hi|hello|hey|bye|guess|weiß nicht|keine Ahnung|je ne sais pas|no sé
    """
)
_EVADES: Final = pattern(rf"\W*(?:(?:{_POLITE}|{_YES}|{_NO}|sorry|honestly)\W+)*{_UNKNOWN}\b")
"""What is said in place of an answer."""

_ONE_WORD: Final = re.compile(r"\W*([^\W\d_][\w'\u2019-]*)\W*")
_COURTESY: Final = words_of(
    """
    thanks thank cheers welcome bye goodbye greetings howdy hiya sup great cool perfect awesome
    amazing interesting funny beautiful excellent brilliant wonderful fantastic lovely impressive
    incredible helpful good fine true noted roger ack agreed correct exactly understood gotcha lgtm
    continue proceed undo redo revert repeat help moment brb back done again more damn dang phew
    nevermind nvm later pardon apologies congrats congratulations
    danke bitte hallo tschüss moin weiter egal toll prima gut genau richtig stimmt verstanden falsch
    entschuldigung warte merci bonjour salut coucou parfait génial compris désolée? bien bon encore
    attends gracias hola adiós adios vale perfecto entendido bueno correcto exacto sigue espera
    perdón perdona disculpa nein nee non não tak grazie ciao obrigad[oa]
    """
)
_NAMES_NOTHING: Final = pattern(
    "|".join([rf"(?!right\b){_YES}", _COURTESY, *map(str.strip, FILLERS.split(","))])
)
"""Single words that are no answer to any question; "Jo", "Nice", "Go" and "Right" may be one."""

# Questions ----------------------------------------------------------------------------------

_IS_NUMBER: Final = re.compile(r"\d+[.)]")
_OFFERS_SEVERAL: Final = pattern(r"\bor\b")
_KIN_IN_GERMAN: Final = words_of(
    "Vater Mutter Eltern Bruder Schwester Geschwister Sohn Tochter Kind Kinder Mann Frau Partner"
    " Partnerin Oma Opa Großmutter Großvater Großeltern Hund Katze"
)
_KIN_IN_FRENCH: Final = words_of(
    "père mère parents frères? sœurs? soeurs? fils filles? enfants? mari femme conjointe? compagnon"
    " compagne grands?-(?:père|mère|parents) chien chat"
)
_IS_OF_SOMEBODY: Final = pattern(
    r"(?:.*[\s,;:])?(?:(?:do|are|were|can) you|have you (?:ever|got|had|been|lived|worked|always)"
    r"|did you (?:ever|grow|study|serve|work|live|use to)"
    r"|(?:is|are|does|do|has|have|was|did|can) (?:your|he|she|they)|any|is (?-i:[A-Z])\w+ your)\b"
    r"|(?:so,? |and )?you(?:r|'re|'ve)? "
    # "Rauchst du?", "Haben Sie Kinder?", "Tu fumes ?", "¿Tienes hijos?"
    r"|(?!(?:willst|möchtest|soll|kannst|siehst|weißt|meinst|brauchst|verstehst|kommst)\b)"
    r"(?:und )?\w+st du\b"
    r"|(?:haben|sind|rauchen|trinken|essen|leben|wohnen|arbeiten|mögen|nehmen) Sie\b"
    r"|(?:et )?(?:est-ce que )?(?:tu|vous) (?!veux|voulez|peux|pouvez|vois|voyez|sais|savez)"
    r"|(?:as|es|avez|êtes|fumes|bois|manges|aimes|vis|travailles)-(?:tu|vous)\b"
    r"|(?!(?:voul|pouv|voy|sav|compren)ez-)\w+ez-vous\b"
    rf"|(?:und )?(?!(?:soll|will|möchte|darf)\b)\w+ (?:Ihre?|deine?) {_KIN_IN_GERMAN}\b"
    rf"|(?:et )?(?:est-ce que )?(?:votre|vos|ton|ta|tes) {_KIN_IN_FRENCH}\b"
    r"|¿(?:y )?(?!quieres|puedes|ves|sabes|necesitas|crees|entiendes)(?:usted )?\w+[aeé]s\b"
    # "¿Tiene diabetes?", "¿Está embarazada?", but not "¿Tiene el error todavía?"
    r"|¿?(?:y )?(?:usted )?(?:(?:fuma|bebe|conduce|padece)\b(?! (?:el|la|los|las)\b)"
    r"|toma (?!nota|\w* ?tiempo)|vive (?:usted )?(?:sol[oa]|con|en|su)\b"
    r"|tiene (?!(?:el|la|los|las)\b|(?:\w+ )?(?:preguntas?|dudas?|tiempo|momento|minuto|problemas?"
    r"|error(?:es)?)\b)|ha (?:tenido|fumado|viajado|sido (?:usted )?(?:operad|vacunad|ingresad))"
    r"|(?:es|eres|estás?) (?:usted )?(?:alérgic|diabétic|celíac|vegan|vegetarian|zurd|fumador|casad"
    r"|solter|divorciad|separad|viud|jubilad|embarazad|vacunad))"
    r"|(?:你|您)(?!要|想|需要|能|可以|看|知道|觉得).*吗|(?!.*(?:しますか|ましょう)).*(?:います|あります|吸います|です)か"
)
"""A question about what somebody is like, or used to: "Do you smoke?"."""
_ASKS_WHICH: Final = pattern(
    r"(?:.*[.!?]\s)?(?:(?:so|and|und|et|y),? )?¿?(?:(?:at|by|for|from|in|on|to|with|de|à|en|con) )?"
    r"(?:(?:which(?! ones?)|who|whose|where|when|what(?! about|(?:'s| is) (?:wrong|next|new)))\b"
    r"|how (?:often|many|much|old|long|tall|do you (?!feel|do\b|like|find))"
    r"|(?:welche[mnrs]?|wer|wo\w{0,3}|wann|wie (?:heiß|nenn|laute|oft|viel|alt|lange?|groß|schwer))"
    r"|qui|où|quand|quel(?:le)?s?|combien|comment \S* ?\S*appel"
    r"|qué|quién|dónde|cuándo|cuál|cuánt|cómo (?:se|te) llam)"
)
"""A question that a single word answers: "Which knee hurts?" """
_SUMS_UP: Final = pattern(r"\W*(?:ok(?:ay)?,? )?so,? you(?:r|'re|'ve)? ")
"""What a "yes" confirms although nothing was asked: "So you live in Zurich."."""
_IS_AT_HAND: Final = pattern(
    r"\b(?:I|me|us|we|let's|this|that|these|those|it|here|now|again|else|another|further|more"
    r"|today|tomorrow|tonight|ready|sure|okay|ok|done|trying|looking|asking|referring|interested"
    r"|happy with|questions?|want|need|mean|mind|think|see|know|remember|agree|wish|hear|follow"
    r"|tienes? (?:sentido\b(?! del? )|(?:mucha )?prisa|que ser"
    r"|(?:alg\w+ )?(?:comentario|sugerencia)s?)"
    r"|ich|mir|mich|uns|das|hier|jetzt|noch|wieder|sicher|fertig|fragen|je|ça|cela|ici|encore"
    r"|prête?|sûre?|esto|eso|ahora|aquí|otra|más|preguntas|estás? (?:usted )?segur[oa]|list[oa])\b"
    r"|这|那|现在|これ|それ|今"
)
"""Words of a question about what is being done: "Do you see it now?"."""
_OF_SERVICE: Final = pattern(
    r"\b(?:(?:can|may|could|shall|should) I (?:help|assist|do|get)|(?:help|assist) you|else"
    r"|of service|how (?:are|have) you|(?:do|did) you (?:think|mean|say|see)|sounds?|make sense"
    r"|what(?:'s| is) (?:up|going on)|on your mind|happened|happening"
    r"|how (?:is|was|did|does|do) (?:it|this|that|you feel))\b"
)
"""What assistants ask, whoever they talk to."""

# Statements ---------------------------------------------------------------------------------

_ANSWERED: Final = re.compile(
    r"(?:[^?\n]{1,80}[.!,] )?(?P<question>[^?\n]{1,120})\? (?P<answer>[^?\n]{1,80})"
)
_SAYS_YES: Final = pattern(r"\W*(?:yes|yeah|yep|yup|I do|I am)\b\W*")
_SAYS_NO: Final = pattern(r"\W*(?:no|nope|nah|never|I don't|I'm not)\b\W*")
_LEAD_OF_VALUE: Final = pattern(r"^(?:it's |it is )?(?:in |at |for )?")
_PLACE: Final = "(?:city|town|place)"
_WHETHER: Final = (
    (pattern(r"do you (?P<what>.+)"), "I", "I don't"),
    (pattern(r"are you (?P<what>.+)"), "I am", "I am not"),
)
_WHICH: Final = (
    (pattern(rf"(?:where|(?:in )?(?:which|what) {_PLACE}) do you live(?: in| now)*"), "I live in"),
    (pattern(r"where do you work|(?:who|which company) do you work (?:for|at)"), "I work at"),
    (pattern(r"how old are you"), "I am"),
    (
        pattern(r"(?:(?:what|when|who|where)(?:'s| is| are)|and) your (?P<what>[^?]{1,60})"),
        "My {what} is",
    ),
)
"""Questions about somebody, and how a statement begins that says the same."""


def answer_to(
    asked: str, reply: str, *, stands_alone: Callable[[str], bool]
) -> tuple[str | None, str]:
    """Return an answer behind its question, and the rest of the reply.

    ``asked`` is what the assistant said just before the ``reply``. If nothing in that needs the
    question, the answer is ``None``, and the rest is all of it. ``stands_alone`` tells of a
    sentence whether it is a fact of its own.
    """
    question = _question_of(asked)
    parts = sentences(reply) if question else []
    answer: list[str] = []
    words = 0
    for part in parts:
        words += len(part.split())
        if words > _LONGEST_ANSWER or stands_alone(part):
            break
        if not _needs_question(part, question, is_first=not answer):
            break
        answer.append(part)
    if not answer:
        return None, reply
    return f"{question} {_joined(answer)}", "\n".join(parts[len(answer) :])


def _joined(parts: Sequence[str]) -> str:
    """Return sentences, or the items of a list, as one line."""
    joints = ["" if part[-1] in ".!?,;:" else "," for part in parts[:-1]]
    return " ".join(part + joint for part, joint in zip(parts, [*joints, ""], strict=True))


def _question_of(asked: str) -> str:
    """Return the questions with which a message ends, or an empty text.

    One sentence may follow them: "Which city? I need it for the weather."
    """
    parts = [part.strip("*_ ") for part in sentences(asked[-_ENDING:])]
    parts = [part for part in parts if not _IS_NUMBER.fullmatch(part)]  # of a list
    if len(parts) > 1 and not _is_question(parts[-1]):
        del parts[-1]
    asks = [*takewhile(_is_question, reversed(parts))][::-1]
    question = " ".join(asks)
    return question if len(question) <= _LONGEST_QUESTION else ""


def _is_question(part: str) -> bool:
    is_question = part.endswith(("?", "\uff1f")) and is_asking(part)
    return (is_question or _SUMS_UP.match(part) is not None) and not _OF_SERVICE.search(part)


def _needs_question(part: str, question: str, *, is_first: bool) -> bool:
    """Return whether a sentence of a reply answers the question, and says too little by itself."""
    if is_asking(part) or _IS_POLITE.fullmatch(part):
        return False
    if is_first and _is_named(part, question):
        return True
    is_of_somebody = _IS_OF_SOMEBODY.match(question) and not _IS_AT_HAND.search(question)
    if _IS_YES_OR_NO.fullmatch(part):
        return not is_first or bool(is_of_somebody)
    if _POINTS.fullmatch(part):
        return _OFFERS_SEVERAL.search(question) is not None
    is_reply = is_of_somebody and _IS_REPLY.match(part)
    is_empty = is_small_talk(part) and not is_bare_name(part)
    if _EVADES.match(part) or ((is_empty or _SELF.search(part)) and not is_reply):
        return False
    return not (is_order(part) or is_instruction(part) or is_request_to_remember(part))


def _is_named(part: str, question: str) -> bool:
    """Return whether a single word, small talk elsewhere, names what is asked for."""
    word = _ONE_WORD.fullmatch(part)
    if word is None or _EVADES.match(part) or _NAMES_NOTHING.fullmatch(word[1]):
        return False
    return _ASKS_WHICH.match(question) is not None and not _IS_AT_HAND.search(question)


def _last_value(answer: str) -> str:
    """Return an answer, or what it corrects itself to: "May 6." of "May 5. Sorry, May 6."."""
    rewritten = corrected(answer, "", ())
    if rewritten == answer:
        return answer
    return re.sub(r"^(?:No|Nein), ", "", sentences(rewritten)[-1])


def as_statement(text: str) -> str:
    """Return what an answer behind its question states, in words of the speaker; or the text.

    "What is your name? Ann" is "My name is Ann", and "Do you smoke? No." is "I don't smoke".
    """
    both = _ANSWERED.fullmatch(text)
    if both is None:
        return text
    question, answer = both["question"], _last_value(both["answer"])
    is_yes, is_no = _SAYS_YES.fullmatch(answer), _SAYS_NO.fullmatch(answer)
    for asks, affirmed, denied in _WHETHER if is_yes or is_no else ():
        if match := asks.fullmatch(question):
            return f"{affirmed if is_yes else denied} {match['what']}"
    for asks, beginning in () if is_yes or is_no else _WHICH:
        if match := asks.fullmatch(question):
            value = _LEAD_OF_VALUE.sub("", answer)
            return f"{beginning.format(**match.groupdict())} {value}"
    return text

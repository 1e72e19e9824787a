"""Which languages texts are written in, and how common capitals are, by their commonest words.

Both are derived from a sample of the store and from the question, so no setting is needed.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, lru_cache
from typing import Final

FUNCTION_WORDS: Final = {
    language: frozenset(words.split())
    for language, words in {
        "english": """the and of to is that for with was it on are what when where how who which a
            an i you we my your has have this from be as do does did at by or if in can were had
            will would""",
        "arabic": """في من على إلى الى عن مع التي الذي الذين هذا هذه ذلك تلك هو هي هم أن ان كان كانت
            يكون تكون قد لقد ما ماذا متى أين اين كيف كم لماذا هل أي اي بأي و أو ثم عند بين بعد قبل
            منذ لها له لهم فيه فيها عليه عليها منها منه تم أنه أنها""",
        "czech": """a v na se si je že s z do o i k ve pro za by byl byla bylo byli být jsou jako po
            od u nebo kdo co čem kdy kde jak jaký jaká jaké jakou jakým který která které kteří
            kterou kterém kolik proč jeho její jejich to ten ta tento tato toto""",
        "danish": """og at det som en et er af for på med den til i de der har havde var blev bliver
            være kan om ved fra eller hvor hvornår hvad hvem hvordan hvilken hvilket hvilke hvorfor
            jeg vi du han hun deres sin sit sine denne dette disse""",
        "dutch": """de het een en van is dat op te zijn met voor die wordt worden aan er ik wij waar
            wanneer hoe welke welk wat wie waarom werd werden was waren in of heeft hebben had kan
            kunnen bij door om als naar uit tot onder deze dit hij zij ze hun haar hem tussen""",
        "finnish": """ja että oli on ovat olivat ollut olla mutta tai kun myös missä milloin mikä
            minä mitä mistä mihin kuka kenen kenet ketkä miten miksi kuinka minkä mitkä millä mille
            mitään se sen sitä hän hänen he ne niiden joka jotka jonka tämä tämän""",
        "french": """le la les l des du de d et est une un dans pour que qu qui sur avec au aux ce
            cet cette ces c il elle ils elles on nous vous je se s en y par ou où a ont avait sont
            était étaient été être fut sera peut peuvent doit doivent son sa ses leur leurs t lui
            quand comment pourquoi combien quel quelle quels quelles quoi dont comme entre vers
            chez""",
        "german": """der die das den dem des und oder ist sind war waren sein ein eine einen einem
            einer eines mit von für auf im in zu zum zur sich auch wird wurde wurden werden hat
            haben hatte hatten kann können konnte an am bei beim als aus nach über unter um durch
            vor wo wie wann wer wen wem was warum wieso wozu wofür womit wodurch wovon worauf worum
            worin woran wogegen wohin woher welche welcher welches welchen welchem ich wir ihr er
            sie es man ihre ihren ihrer ihrem seine seinen seiner seinem diese dieser dieses diesen
            diesem dass bis seit zwischen""",
        "greek": """και ή το η ο να του της τον την τους τις με για που στο στον στην στη στα στους
            στις είναι ήταν έχει έχουν είχε θα οι τα των από σε ως ένα μια μία ένας έναν πού πότε τι
            πώς πως ποιος ποια ποιο ποιοι ποιες ποιον ποιαν ποιου ποιας ποιων πόσα πόση πόσο πόσοι
            πόσες γιατί αυτό αυτή αυτός αυτά""",
        "hungarian": """a az és vagy egy hogy is volt van voltak vannak lett meg ez ezt azt ki kik
            mi mit mik mikor hol hova honnan hogyan melyik melyek mely milyen hány hányan mennyi
            miért kit kinek minek mennyire""",
        "indonesian": """yang dan atau di ke dari untuk dengan pada adalah ini itu oleh dalam
            sebagai akan telah sudah ada apa apakah siapa kapan mana dimana bagaimana berapa mengapa
            saya kami dia mereka""",
        "italian": """il lo la i gli le l un una uno di d del dello della dei degli delle dell e ed
            o è per con che si ci da dal dalla dai al allo alla ai agli alle all nel nella nei nelle
            nell sul sulla su in sono ha hanno era erano essere stato stata fu può possono dove
            quando chi cosa come quale quali qual quanto quanti quanta quante perché suo sua suoi
            sue questo questa questi queste""",
        "norwegian": """og at det som en et er av for på med den til i de har hadde var ble blir
            være kan om ved fra eller hvor når hva hvem hvordan hvilken hvilket hvilke hvorfor jeg
            vi du han hun deres sin sitt sine denne dette disse""",
        "polish": """w na z i się jest są był była było byli być że po od dla jako przez do o a u
            lub ze we kto kogo co czego czym kiedy gdzie jak jaki jaka jakie jaką jakim jakich który
            która które którzy którą którym których ile dlaczego jego jej ich ten ta to te tego""",
        "portuguese": """o a os as do da dos das de e ou é um uma uns umas em para por pelo pela
            pelos pelas com que se na no nas nos num numa ao aos à às foi são era eram foram ser
            está tem têm pode podem onde quando quem como qual quais quanto quanta quantos quantas
            porque seu sua seus suas este esta estes estas esse essa isso desde até sobre entre""",
        "romanian": """și sau în a al ai ale de la cu pe un o unui unei este sunt era erau fost fi
            au are că să care din pentru prin lui îi i se s ce cine când unde cum cât câți câte câtă
            cărui cărei căror cui ei lor său sa sale acest această acestui mai iar dar ca fiind""",
        "russian": """и в во на с со что чего чем чему по как к это этот эта эти для из от до за при
            я мы он она оно они его её ее их был была было были быть есть о об у а или кто кого кому
            кем где куда откуда когда какой какая какое какие какого каком какую каких каким сколько
            почему который которая которое которые которого которой""",
        "spanish": """el la los las de del y e o u es un una unos unas en para por con que se su sus
            al a lo le les como fue fueron era eran son ser ha han había está están puede pueden
            quién quiénes dónde cuándo cuánto cuántos cuánta cuántas cómo qué cuál cuáles este esta
            estos estas ese esa eso desde hasta sobre entre""",
        "swedish": """och att det som en ett är av för på med den till i de har hade var blev blir
            vara kan om vid från eller hur när vart vilken vilket vilka vad vem vilkas varför jag vi
            du han hon deras sin sitt sina denna detta dessa""",
        "turkish": """ve veya bir bu şu o da de ki ile için olarak olan oldu olur ne nedir neydi
            neden niçin nasıl kim kimi kime kimin kimdir kimdi kimler hangi hangisi kaç kaçta nerede
            nereye nereden neler zaman mi mı mu mü mıdır midir idi ise gibi tarafından çok daha
            kadar sonra önce göre her olduğu bunun onun ancak""",
    }.items()
}
"""For each language, under the name of its Snowball stemmer, its commonest words and its question
words. Negations are left out: they change the meaning.
"""
FUNCTION_CHARACTERS: Final = "的了是吗呢吧哪谁什么几怎这那在和与其被于为之而"
"""The same for Chinese. In Japanese, function words are where its two scripts meet: "の値"."""
JOINING: Final = frozenset({"german", "dutch", "swedish", "danish", "norwegian", "finnish"})
"""Languages that write a compound as a single word."""

_LEAST_SHARE: Final = 0.1
"""The share of texts in a language from which on it counts as one of the store's languages."""
_CAPITALS_ORDINARY: Final = 0.2
"""The share of capitalised words inside sentences from which on a capital does not mark a name.

In samples of English notes, code and articles it was 0 to 18 %, in German ones 27 to 36 %.
"""
_BACKGROUND_WORDS: Final = 50
_BACKGROUND_SHARE: Final = 0.07
"""The share in 50 English words added to each sample: three sentences alone prove nothing."""
_WORDS: Final = re.compile(r"[^\W\d_]{2,}|[^\W\d_a-zA-Z]")
"""A single Latin letter may mean anything: in code most are names."""
_INNER_WORDS: Final = r"(?<=[\w,;:'\u2019\-] )[\"'(\u2018\u201c]?([^\W\d_]{2,})"
"""A pattern that is needed only if a query has a name."""


def languages_of(texts: tuple[str, ...], query: str) -> frozenset[str]:
    """Return the languages of at least a tenth of these texts, and the language of a query."""
    asked = _language_of(query)
    return languages_in(texts) | {asked} if asked else languages_in(texts)


def language_of_query(texts: tuple[str, ...], query: str) -> str | None:
    """Return the language of a query or, if its words do not tell, the only one of the texts."""
    if asked := _language_of(query):
        return asked
    spoken = languages_in(texts)
    return next(iter(spoken)) if len(spoken) == 1 else None


def is_function_pair(pair: str) -> bool:
    """Return whether two characters are not a word, because one is a function word."""
    return _function_pairs().search(pair) is not None


@cache
def _function_pairs() -> re.Pattern[str]:
    """Compile the pattern when a query has such a script."""
    return re.compile(f"[{FUNCTION_CHARACTERS}]|多少|[ぁ-ん][^ぁ-ん]|[^ぁ-ん][ぁ-ん]")


@lru_cache(maxsize=16)  # the newest texts of a store are the same from search to search
def languages_in(texts: tuple[str, ...]) -> frozenset[str]:
    """Return the languages in which at least a tenth of these texts is written."""
    counted = Counter(language for text in texts if (language := _language_of(text)))
    least = _LEAST_SHARE * counted.total()
    return frozenset(language for language, count in counted.items() if count >= least)


def _language_of(text: str) -> str | None:
    """Return the language that most different words of a text are common in, two at least."""
    words = set(_WORDS.findall(text.lower()))
    best = max(FUNCTION_WORDS, key=lambda language: len(words & FUNCTION_WORDS[language]))
    return best if len(words & FUNCTION_WORDS[best]) >= 2 else None


def are_capitals_ordinary(texts: tuple[str, ...], query: str) -> bool:
    """Return whether capitals inside sentences are so common that they mean nothing.

    Texts and query are looked at. A capital then does not make a word a name.
    """
    of_texts, of_query = _capitals(texts), _capitals((query,))
    capitals = of_texts[0] + of_query[0] + _BACKGROUND_SHARE * _BACKGROUND_WORDS
    return capitals >= _CAPITALS_ORDINARY * (of_texts[1] + of_query[1] + _BACKGROUND_WORDS)


@lru_cache(maxsize=16)
def _capitals(texts: tuple[str, ...]) -> tuple[int, int]:
    """Count the words inside the sentences of texts: those with a capital, and all."""
    inner = (word for text in texts for word in re.findall(_INNER_WORDS, text))
    words: list[str] = [word for word in inner if not word.isupper()]
    return sum(word[0].isupper() for word in words), len(words)

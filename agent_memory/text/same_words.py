"""Words that people write in two ways: short or in full, British or American, as verb or as noun.

Pure. Nothing here knows which words exist: the caller keeps those that the store has.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

_SHORT: Final = """
    acct/account addr/address admin/administrator/administration amt/amount app/application
    appt/appointment apt/apartment auth/authentication/authorization/authorisation bday/birthday
    bike/bicycle config/configuration db/database demo/demonstration dept/department
    dev/development/developer dir/directory doc/document/documentation env/environment
    exam/examination exec/executable/execution fav/favorite/favourite fb/facebook flu/influenza
    fridge/refrigerator func/function gh/github govt/government gym/gymnasium hr/hour img/image
    impl/implementation info/information insta/instagram intl/international js/javascript
    k8s/kubernetes kg/kilogram km/kilometer/kilometre kube/kubernetes lab/laboratory lib/library
    math/maths/mathematics max/maximum mgmt/management mgr/manager min/minimum/minute
    mongo/mongodb msg/message mtg/meeting obj/object org/organization/organisation param/parameter
    perf/performance pg/postgres/postgresql phone/telephone photo/photograph pic/picture
    pkg/package plane/airplane/aeroplane postgres/postgresql prod/production prof/professor
    pwd/password py/python qty/quantity ref/reference repo/repository spec/specification
    stats/statistics tel/telephone ts/typescript tv/television uni/university util/utility
    var/variable ver/version vet/veterinarian wk/week yr/year yt/youtube
    acknowledgement/acknowledgment ageing/aging aluminium/aluminum artefact/artifact cheque/check
    cosy/cozy doughnut/donut grey/gray jewellery/jewelry judgement/judgment mould/mold
    moustache/mustache mum/mom plough/plow practise/practice programme/program pyjamas/pajamas
    sceptical/skeptical tyre/tire
"""
_DERIVED: Final = """
    admit/admission advise/advice allergic/allergy asthmatic/asthma behave/behavior/behaviour
    choose/choice describe/description destroy/destruction diabetic/diabetes expand/expansion
    explain/explanation extend/extension fly/flight grow/growth lose/loss maintain/maintenance
    marry/marriage permit/permission prove/proof receive/receipt reduce/reduction
    respond/response sell/sale sing/song solve/solution speak/speech subscribe/subscription
    succeed/success weigh/weight
    deep/depth high/height long/length strong/strength wide/width
"""
"""Verbs and adjectives with the nouns made of them, which no stemmer brings together."""
_ANSWERED_BY: Final = """
    live/moved/address/home/based/reside home/moved/address/live reside/live/moved/address/home
    address/live/moved work/job/joined/hired/employed/employer job/work/joined/hired/employed
    employer/work/job/joined/hired employed/work/job/joined/hired occupation/work/job
    profession/work/job spouse/wife/husband/married married/wife/husband/wedding
    partner/wife/husband/girlfriend/boyfriend kid/son/daughter/child children/son/daughter/kid
    sibling/brother/sister parent/mother/father/mom/dad/mum pet/dog/cat/puppy/kitten
    old/age/born/birthday/turned age/old/born/birthday/turned born/birthday/age birthday/born
    eat/vegetarian/vegan/pescatarian/allergic/allergy meat/vegetarian/vegan/pescatarian
    diet/vegetarian/vegan/pescatarian vegan/vegetarian vegetarian/vegan
"""
"""What people ask for, and the words with which it is said: "where do I live?" is answered by "I
moved to Bergen"."""
_SPELT: Final = tuple(
    (re.compile(british), american, re.compile(made_british), other)
    for british, american, made_british, other in (
        (r"(?<=[a-z]{2})our", "or", r"(?<=[a-z]{2})or", "our"),  # "colour"; "four" is not "for"
        (r"is(?=e[drs]?$|ing$|ation)", "iz", r"iz(?=e[drs]?$|ing$|ation)", "is"),  # "organise"
        (r"ys(?=e[drs]?$|ing$)", "yz", r"yz(?=e[drs]?$|ing$)", "ys"),  # "analyse"
        (r"(?<=[a-z]{2}[bt])re(?=s?$)", "er", r"(?<=[a-z]{2}[bt])er(?=s?$)", "re"),  # "centre"
        # "travelled"; "filled" is not "filed".
        (r"(?<=[a-z]{4}l)l(?=ed$|ing$|er)", "", r"(?<=[a-z]{4}l)(?<!ll)(?=ed$|ing$|er)", "l"),
        (r"(?<=[a-z]{2}l)ogue(?=s?$)", "og", r"(?<=[a-z]{2}l)og(?=s?$)", "ogue"),  # "catalogue"
        (r"enc(?=e)", "ens", r"ens(?=e)", "enc"),  # "licence"
    )
)
"""Differences between British and American spelling, in both directions."""


def same_words(word: str) -> set[str]:
    """Return the other spellings of a lower-case word: "repository" for "repo", "color"."""
    table = _table()
    bases = (word, word.removesuffix("s"), f"{word.removesuffix('ies')}y")
    forms = {form for base in bases for form in table.get(base, ())}
    for british, american, made_british, other in _SPELT:
        forms |= {british.sub(american, word), made_british.sub(other, word)}
    return forms - {word}


def answering_words(word: str) -> tuple[str, ...]:
    """Return words that may say what a lower-case word of a question asks for."""
    table = _answers()
    return table.get(word) or table.get(word.removesuffix("s"), ())


@cache
def _answers() -> dict[str, tuple[str, ...]]:
    groups = (group.split("/") for group in _ANSWERED_BY.split())
    return {asked: tuple(words) for asked, *words in groups}


@cache
def _table() -> dict[str, set[str]]:
    table: dict[str, set[str]] = {}
    for group in f"{_SHORT} {_DERIVED}".split():
        short, *whole = group.split("/")
        table.setdefault(short, set()).update(whole)
        for form in whole:  # "document" is not "documentation", though "doc" can be either
            table.setdefault(form, set()).add(short)
    return table

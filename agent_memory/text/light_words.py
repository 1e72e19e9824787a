"""English words that say little about the subject of a question, and more about how it is asked.

Unlike stop words they are searched for and count in the ranking: in "how did the team feel after
the merge?", "after" and "feel" are not noise. But when it is decided whether a memory is about the
question at all, having them or not says less than "team" and "merge".
"""

from typing import Final

LIGHT_WORDS: Final = frozenset(
    # relations in space, time and logic
    """
    according across after again against all along among another around away back because before
    between both down due during each either even every like off onto other others over own per
    same since still than through together toward towards under until upon while within without
    already also ever only yet
    """
    # the remains of "didn't" and similar words
    """
    ain aren couldn didn doesn don hadn hasn haven isn shouldn wasn weren won wouldn
    """
    # what a question asks for: of which kind, and how much
    """
    answer anyone anything certain current currently different far favorite favourite few kind kinds
    less likely long lot lots many more most much name no number often one ones reason several some
    someone something sort specific thing things type types way ways yes
    """
    # verbs that can stand for any other
    """
    became become began begin came come decide decided feel feeling feels felt find found gave get
    gets getting give given gives giving go goes going gone got gotten happen happened keep kept
    knew know known liked likes look looked made make makes making mention mentioned need needs
    plan planned planning plans put said saw say says see seen show showed shown start started
    starting starts take taken takes taking tell think thinks thought told took tried try use used
    uses using want wanted wants went
    """
    # times that fit every memory
    """
    ago day days first last month months new next now recent recently time times today tomorrow
    week weeks year years yesterday
    """.split()
)

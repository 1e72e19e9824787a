"""English words that say little of what a question is about: how it is asked, not what for.

Unlike stop words they are searched for, and rank what has them: "after", "kind" and "feel" are no
noise in "how did the team feel after the merge?". But where it is asked whether a memory is about
the question at all, they say less than "team" and "merge", whether it has them or not.
"""

from typing import Final

LIGHT_WORDS: Final = frozenset(
    # where and how things stand to each other
    """
    according across after again against all along among another around away back because before
    between both down due during each either even every like off onto other others over own per
    same since still than through together toward towards under until upon while within without
    already also ever only yet
    """
    # what is left of "didn't" and its like
    """
    ain aren couldn didn doesn don hadn hasn haven isn shouldn wasn weren won wouldn
    """
    # what is asked for: of which kind, and how much
    """
    answer anyone anything certain current currently different far favorite favourite few kind kinds
    less likely long lot lots many more most much name no number often one ones reason several some
    someone something sort specific thing things type types way ways yes
    """
    # verbs that any other may stand for
    """
    became become began begin came come decide decided feel feeling feels felt find found gave get
    gets getting give given gives giving go goes going gone got gotten happen happened keep kept
    knew know known liked likes look looked made make makes making mention mentioned need needs
    plan planned planning plans put said saw say says see seen show showed shown start started
    starting starts take taken takes taking tell think thinks thought told took tried try use used
    uses using want wanted wants went
    """
    # times that are of every memory
    """
    ago day days first last month months new next now recent recently time times today tomorrow
    week weeks year years yesterday
    """.split()
)
